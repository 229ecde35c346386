# The few shapes a target of this project may have. Every folder's CMakeLists.txt is made of these.
set(LEAT_SANITIZE "" CACHE STRING "empty, 'address' (with undefined behaviour) or 'thread'")
option(LEAT_WERROR "treat warnings as errors" OFF)

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(leat_options INTERFACE)
target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-restrict>)  # restrict: false alarms of GCC 12 on string +
target_include_directories(leat_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(leat_options INTERFACE Threads::Threads)
if(LEAT_WERROR)
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(LEAT_SANITIZE STREQUAL "address")
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1>)
  target_link_options(leat_options INTERFACE -fsanitize=address,undefined)
elseif(LEAT_SANITIZE STREQUAL "thread")
  target_compile_options(leat_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread -g1>)
  target_link_options(leat_options INTERFACE -fsanitize=thread)
endif()

# leat_library(NAME SOURCES... LIBS...): a static library; other rooms link it by NAME.
function(leat_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC leat_options ${A_LIBS})
endfunction()

# leat_test(NAME SOURCES... LIBS... [TIMEOUT s] [LABELS ...] [ARGS ...] [SERIAL]): a GoogleTest program, run whole by
# ctest. SERIAL: it measures time or kills processes, so nothing else runs beside it.
function(leat_test name)
  cmake_parse_arguments(A "SERIAL" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE leat_options ${A_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 60)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${A_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}" SKIP_REGULAR_EXPRESSION "every test skipped")
  if(A_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# leat_program(NAME SOURCES... LIBS... [INSTALL]): an executable; INSTALL puts it into bin.
function(leat_program name)
  cmake_parse_arguments(A "INSTALL" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE leat_options ${A_LIBS})
  if(A_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()
