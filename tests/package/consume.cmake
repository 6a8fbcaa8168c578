cmake_minimum_required(VERSION 3.25)
# Builds and runs a program that uses redlease in one of the WAYs a project can; KIND is static or shared.
# For find_package the library is installed first, and the prefix moved, since an installed package is often relocated.
file(REMOVE_RECURSE ${WORK})
string(COMPARE EQUAL ${KIND} shared shared)
list(APPEND settings -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -DBUILD_SHARED_LIBS=${shared})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

if(WAY STREQUAL find_package)
  set(build_type "")
  if(shared)
    set(build_type Release)  # the one that is weighed
  endif()
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/library ${settings} -DCMAKE_BUILD_TYPE=${build_type}
    -DREDLEASE_BUILD_TESTS=OFF -DREDLEASE_BUILD_BENCH=OFF -DREDLEASE_BUILD_EXAMPLES=OFF
    -DREDLEASE_BUILD_TOOL=${shared})  # with the shared one, to see that the tool needs no more than that exports
  run(${CMAKE_COMMAND} --build ${WORK}/library --parallel 2)
  run(${CMAKE_COMMAND} --install ${WORK}/library --prefix ${WORK}/first)
  file(RENAME ${WORK}/first ${WORK}/prefix)
  list(APPEND settings -DCMAKE_PREFIX_PATH=${WORK}/prefix)
  if(shared)
    list(APPEND settings -DCMAKE_DISABLE_FIND_PACKAGE_hiredis=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
  endif()

  file(GLOB_RECURSE written RELATIVE ${SOURCE}/include ${SOURCE}/include/*.hpp)
  file(GLOB_RECURSE installed RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.hpp)
  if(NOT written STREQUAL installed)
    message(FATAL_ERROR "The library's FILE_SET lists other headers than there are.\n"
      "there are: ${written}\ninstalled: ${installed}")
  endif()
endif()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/consumer ${settings}
  -DWAY=${WAY} -DREDLEASE_SOURCE=${SOURCE})
run(${CMAKE_COMMAND} --build ${WORK}/consumer --parallel 2)
run(${WORK}/consumer/consumer)
if(NOT output MATCHES "^fence [1-9][0-9]*\n$")
  message(FATAL_ERROR "The consumer printed '${output}'")
endif()

if(WAY STREQUAL find_package AND shared)
  include(${CMAKE_CURRENT_LIST_DIR}/shared_library.cmake)
endif()
