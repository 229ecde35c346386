# The few shapes a target of this project may have. Every folder's CMakeLists.txt is made of these.
set(LEAT_SANITIZE "" CACHE STRING "empty, 'address' (with undefined behaviour), 'thread', or 'fuzzer' (clang's, with both of the first)")
option(LEAT_WERROR "treat warnings as errors" OFF)
option(LEAT_UNITY "build from nothing in a third of the time: sources of a target compiled together, headers once, -O2" OFF)
option(LEAT_QUICK "the build that tests use: what is not hot is compiled at -Og, in half the time" OFF)
option(LEAT_TWICE "tests labelled asan are built without a sanitizer too" ON)
set(ONNXRUNTIME_ROOT "${PROJECT_BINARY_DIR}/deps/onnxruntime" CACHE PATH "holds include/onnxruntime_c_api.h; tools/setup fills the default")

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(leat_options INTERFACE)
if(NOT LEAT_SANITIZE)  # warnings are held by the plain build; GCC errs about instrumented code
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-missing-field-initializers -Wno-restrict>)  # designated initialisers leave members out on purpose; GCC 12 errs on string +
endif()
target_include_directories(leat_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(leat_options INTERFACE Threads::Threads)
if(LEAT_WERROR)
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# -Og: instrumented code is optimised as far as it stays quick to compile; -O3 takes five times as long under sanitizers.
if(LEAT_SANITIZE)
  string(REGEX REPLACE "-O[0-9]" "-Og" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
elseif(LEAT_UNITY)
  string(REGEX REPLACE "-O[0-9]" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()
if(LEAT_SANITIZE STREQUAL "address")
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize=object-size,vptr -fno-sanitize-recover=all -fno-omit-frame-pointer -g1>)
  # A check before every access makes a third of what is compiled. The address sanitizer stops at null by itself; that
  # something is aligned is asked where memory of others is read (leat_reads_others).
  target_compile_options(leat_options INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:LEAT_READS_OTHERS>>>>:-fno-sanitize=null,alignment>)
  # Checks as calls are a fifth less to compile, and run two and a half times slower: not where tests compute (leat_computes).
  target_compile_options(leat_options INTERFACE $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<NOT:$<BOOL:$<TARGET_PROPERTY:LEAT_COMPUTES>>>>:--param=asan-instrumentation-with-call-threshold=0>)
  target_link_options(leat_options INTERFACE -fsanitize=address,undefined)
elseif(LEAT_SANITIZE STREQUAL "fuzzer")
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Wno-unknown-warning-option -O1 -g1>)
  target_link_options(leat_options INTERFACE -fsanitize=address,undefined)
elseif(LEAT_SANITIZE STREQUAL "thread")
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread -g1>)
  target_link_options(leat_options INTERFACE -fsanitize=thread)
endif()

if(LEAT_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  # GCC 13 and later take these at -O2 and not at -Og, and use no precompiled header across the two unless they are said.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-munroll-only-small-loops LEAT_HAS_SMALL_LOOPS)
  if(LEAT_HAS_SMALL_LOOPS)
    target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-munroll-only-small-loops -mvzeroupper>)
  endif()
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)  # asks whether a type stands in the main file
endif()

# With LEAT_UNITY, what most sources include is parsed once: the standard library for programs, GoogleTest besides for tests.
# leat_precompiled(NAME TARGET): NAME's sources start from what TARGET has; in a sanitizer build all start from the tests',
# which are most of it. GCC does not count precompiled headers as the system's and errs about them; what hot libraries are
# warned of stays as it is: they start from one in sanitizer builds alone.
set(leat_std_headers <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <filesystem>
  <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view>
  <thread> <unordered_map> <utility> <variant> <vector>)
function(leat_precompiled name target)
  if(LEAT_UNITY)
    if(LEAT_SANITIZE)
      set(target leat_test_main)
      target_compile_options(${name} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)  # or GCC refuses it
    endif()
    target_precompile_headers(${name} REUSE_FROM ${target})
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
endfunction()
if(LEAT_SANITIZE)
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)  # or programs and libraries could not share one
elseif(LEAT_UNITY)
  foreach(target leat_precompiled_program leat_precompiled_library)
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/precompiled.cpp)
    target_link_libraries(${target} PRIVATE leat_options)
    target_precompile_headers(${target} PRIVATE ${leat_std_headers})
  endforeach()
  set_target_properties(leat_precompiled_library PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()

# programs: what a user runs, without tests. sanitized_tests: in a sanitizer build, the tests labelled for it.
add_custom_target(programs)
if(LEAT_SANITIZE)
  add_custom_target(sanitized_tests)
  string(SUBSTRING "${LEAT_SANITIZE}" 0 1 leat_sanitizer)
  set(leat_sanitizer "${leat_sanitizer}san")  # asan, tsan
endif()

# Targets that read memory another process writes, at places it names.
function(leat_reads_others)
  set_target_properties(${ARGN} PROPERTIES LEAT_READS_OTHERS ON)
endfunction()

# Targets whose own code is what their sanitized tests spend their time in.
function(leat_computes)
  set_target_properties(${ARGN} PROPERTIES LEAT_COMPUTES ON)
endfunction()

# Nothing in target NAME is hot: with LEAT_QUICK it is compiled at -Og.
function(leat_cold name)
  if(LEAT_QUICK AND NOT LEAT_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)
  endif()
endfunction()

# leat_library(NAME SOURCES... LIBS... [COLD]): a static library; other rooms link it by NAME. COLD: nothing in it is hot.
function(leat_library name)
  cmake_parse_arguments(A "COLD" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC leat_options ${A_LIBS})
  if(LEAT_SANITIZE OR A_COLD)  # at -O2 the warnings that precompiled headers cost are worth more
    leat_precompiled(${name} leat_precompiled_library)
  endif()
  if(A_COLD)
    leat_cold(${name})
  endif()
endfunction()

# The main() of every test program. It ends with status 77 when nothing failed but something was skipped: ctest's summary
# shows such a program as skipped.
if(BUILD_TESTING OR LEAT_SANITIZE)
  add_library(leat_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/test_main.cpp)
  target_link_libraries(leat_test_main PUBLIC leat_options GTest::gtest GTest::gmock)
  if(LEAT_UNITY)
    target_precompile_headers(leat_test_main PRIVATE ${leat_std_headers} <gtest/gtest.h>)
  endif()
endif()

# A test that watches the clock or kills processes: one of them at a time, few others beside it, and begun early, since they
# stand in line.
set(leat_timed RESOURCE_LOCK clock PROCESSORS 2 COST 1000)

# leat_test(NAME SOURCES... LIBS... [TIMEOUT s] [LABELS ...] [ARGS ...] [SUITES ...] [TIMED] [TWICE]): a GoogleTest program,
# run whole by ctest; SUITES: each of these by itself, as NAME.SUITE. TIMED: see leat_timed. LABELS asan, tsan: it is built
# and run under that sanitizer; only such tests exist in a sanitizer build. What is labelled asan runs only there where
# LEAT_TWICE is off, unless it says TWICE: it does more, or something else, without a sanitizer. The label `processes` is set
# on those that start a leatd or are TIMED (tools/setup.d/second_look).
function(leat_test name)
  cmake_parse_arguments(A "TIMED;TWICE" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS;SUITES" ${ARGN})
  if(NOT BUILD_TESTING OR (LEAT_SANITIZE AND NOT leat_sanitizer IN_LIST A_LABELS))
    return()
  endif()
  if(NOT LEAT_SANITIZE AND NOT LEAT_TWICE AND NOT A_TWICE AND asan IN_LIST A_LABELS)
    return()
  endif()
  add_executable(${name} ${A_SOURCES})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)  # what is tested stays as it ships; the test itself compiles in half the time
  target_link_libraries(${name} PRIVATE leat_options ${A_LIBS} leat_test_main)
  leat_precompiled(${name} leat_test_main)
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  if(A_TIMED OR "leat_test_daemon" IN_LIST A_LIBS OR "leat_attacks" IN_LIST A_LIBS)
    list(APPEND A_LABELS processes)
  endif()
  set(command ${name} ${A_ARGS})
  set(suffix)
  if(LEAT_SANITIZE)
    add_dependencies(sanitized_tests ${name})
    set(suffix .${leat_sanitizer})
    math(EXPR A_TIMEOUT "${A_TIMEOUT} * 5")
    if(LEAT_SANITIZE STREQUAL "thread")
      set(command setarch -R $<TARGET_FILE:${name}> ${A_ARGS})  # its shadow memory needs a fixed address layout
    endif()
  endif()
  if(CMAKE_CROSSCOMPILING_EMULATOR)  # instruction by instruction
    math(EXPR A_TIMEOUT "${A_TIMEOUT} * 20")
  endif()
  set(tests)
  foreach(suite ${A_SUITES})
    add_test(NAME ${name}.${suite}${suffix} COMMAND ${command} --gtest_filter=${suite}.*:*/${suite}.*)
    list(APPEND tests ${name}.${suite}${suffix})
  endforeach()
  if(NOT A_SUITES)
    set(tests ${name}${suffix})
    add_test(NAME ${tests} COMMAND ${command})
  endif()
  # What may take long is begun first: nothing is left to run alone at the end.
  set_tests_properties(${tests} PROPERTIES TIMEOUT ${A_TIMEOUT} COST ${A_TIMEOUT} LABELS "${A_LABELS}" SKIP_RETURN_CODE 77)
  if(A_TIMED)
    set_tests_properties(${tests} PROPERTIES ${leat_timed})
  endif()
  if(LEAT_SANITIZE)
    set_tests_properties(${tests} PROPERTIES FIXTURES_REQUIRED built.${leat_sanitizer})
    if(A_TIMED)  # little is timed in instrumented code: a line of its own, beside the other
      set_tests_properties(${tests} PROPERTIES RESOURCE_LOCK sanitized_clock COST 500)
    endif()
  endif()
endfunction()

# leat_bench_test(NAME BARS bar... COMMAND program argument... [UNLESS bar] [SERIAL | TIMED] [TIMEOUT s]): a small run of a
# program that prints JSON, held to bars on what it measures (bench/serving/hold.cpp says how a bar is written). SERIAL: it compares
# speeds by the clock, so nothing else runs beside it. Not under sanitizers.
function(leat_bench_test name)
  cmake_parse_arguments(A "SERIAL;TIMED" "TIMEOUT;UNLESS" "BARS;COMMAND" ${ARGN})
  if(NOT BUILD_TESTING OR LEAT_SANITIZE)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  list(POP_FRONT A_COMMAND program)
  if(A_UNLESS)
    list(APPEND A_BARS --unless ${A_UNLESS})
  endif()
  add_test(NAME ${name} COMMAND hold ${A_BARS} -- $<TARGET_FILE:${program}> ${A_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS bench SKIP_RETURN_CODE 77)
  if(A_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  elseif(A_TIMED)
    set_tests_properties(${name} PROPERTIES ${leat_timed})
  endif()
endfunction()

# leat_program(NAME SOURCES... LIBS... [COLD] [INSTALL] [MANUAL section]): an executable; COLD: nothing in its own sources is
# hot; INSTALL puts it into bin. MANUAL: its `--man` is written to build/man and installed.
function(leat_program name)
  cmake_parse_arguments(A "COLD;INSTALL" "MANUAL" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE leat_options ${A_LIBS})
  leat_precompiled(${name} leat_precompiled_program)
  if(A_COLD)
    leat_cold(${name})
  endif()
  if(A_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    add_dependencies(programs ${name})
  endif()
  if(LEAT_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(A_MANUAL)
    set(folder ${PROJECT_BINARY_DIR}/man/man${A_MANUAL})
    set(page ${folder}/${name}.${A_MANUAL})
    add_custom_command(OUTPUT ${page} COMMAND ${CMAKE_COMMAND} -E make_directory ${folder} COMMAND ${name} --man > ${page} DEPENDS ${name} VERBATIM)
    add_custom_target(${name}_manual ALL DEPENDS ${page})
    add_dependencies(programs ${name}_manual)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${A_MANUAL})
  endif()
endfunction()
