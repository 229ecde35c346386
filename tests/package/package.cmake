# cmake -P: installs the build into a prefix, moves it elsewhere, builds and runs an outside program with find_package(leat)
# and one with pkg-config, looks whether programs, manual pages and completion are there and that none of it names the build
# or the sources, and serves a picture with the build hidden.
# Takes BUILD (build folder), SOURCE (this folder), WORK (a folder that may be emptied), COMPILER.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run("cmake --install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/prefix)
foreach(file share/bash-completion/completions/leat bin/leat bin/leatd bin/leat-worker bin/leat-plan include/leat/leat.h include/leat/client.hpp include/leat/executor.h share/man/man1/leat.1 share/man/man1/leat-feed.1)
  if(NOT EXISTS ${WORK}/prefix/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
file(GLOB_RECURSE config ${WORK}/prefix/leatConfig.cmake)
file(GLOB_RECURSE pc ${WORK}/prefix/leat.pc)
if(NOT config OR NOT pc)
  message(FATAL_ERROR "leatConfig.cmake or leat.pc was not installed")
endif()

run("configuring the outside program" ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/outside -B ${WORK}/outside -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER})
run("building the outside program" ${CMAKE_COMMAND} --build ${WORK}/outside)
run("running the outside program" ${WORK}/outside/outside)

get_filename_component(pc_folder ${pc} DIRECTORY)
execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_folder} pkg-config --cflags --libs leat
  RESULT_VARIABLE result OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "pkg-config does not know leat")
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
get_filename_component(library_folder ${pc_folder} DIRECTORY)
run("building with pkg-config" ${COMPILER} -std=c++20 ${SOURCE}/outside/main.cpp -o ${WORK}/by_pkg_config ${flags} -Wl,-rpath,${library_folder})
run("running what pkg-config built" ${WORK}/by_pkg_config)
run("running the installed leat" ${WORK}/prefix/bin/leat --version)

# The examples of the documents, as a reader would build them, against the installed leatd.
run("configuring the examples" ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/../../docs/examples -B ${WORK}/examples -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER})
run("building the examples" ${CMAKE_COMMAND} --build ${WORK}/examples)
find_program(python NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(python)
  run("running the examples" ${python} ${SOURCE}/examples.py ${WORK}/prefix ${SOURCE}/../../docs/examples ${WORK}/examples ${SOURCE}/../../tools/models/shapes/shapes.toml)
endif()

# Nothing of the machine that built it, and nothing missing once the build is out of sight.
get_filename_component(sources ${SOURCE}/../.. ABSOLUTE)
file(GLOB_RECURSE installed ${WORK}/prefix/*)
foreach(file ${installed})
  file(STRINGS ${file} found REGEX "${sources}/|${BUILD}/" LIMIT_COUNT 1)
  if(found)
    message(FATAL_ERROR "${file} names a path of the build: ${found}")
  endif()
endforeach()
run("serving a picture with the build hidden" ${SOURCE}/alone ${WORK}/prefix ${BUILD} ${sources}/tools/models/shapes)
