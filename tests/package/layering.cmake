cmake_minimum_required(VERSION 3.25)
# Reads every #include of include/redlease and src and fails on one that points up, or across from plan to wire.
# base < plan, wire < store < service < lease < edge
set(base
  bell clock concat error export fork helper_names lease_info metrics metrics_text mutex nap observer options thread types
  version)
set(edge redlease)
set(rank_base 0)
set(rank_plan 1)
set(rank_wire 1)
set(rank_store 2)
set(rank_service 3)
set(rank_lease 4)
set(rank_edge 5)

# A path below include/redlease or src, without its extension. A file at the top is lease unless it is named above.
function(layer_of path out)
  if(path MATCHES "^(plan|wire|store|service)/")
    set(layer ${CMAKE_MATCH_1})
  elseif(path MATCHES "^cli/" OR path IN_LIST edge)
    set(layer edge)
  elseif(path IN_LIST base)
    set(layer base)
  else()
    set(layer lease)
  endif()
  set(${out} ${layer} PARENT_SCOPE)
endfunction()

function(wrong_arrows root out)
  set(wrong "")
  foreach(folder include/redlease src)
    file(GLOB_RECURSE files RELATIVE ${root}/${folder} ${root}/${folder}/*.hpp ${root}/${folder}/*.cpp)
    foreach(file IN LISTS files)
      string(REGEX REPLACE "\\.[a-z]+$" "" path ${file})
      layer_of(${path} from)
      file(STRINGS ${root}/${folder}/${file} lines REGEX "^[ \t]*#[ \t]*include")
      foreach(line IN LISTS lines)
        if(folder MATCHES "include" AND line MATCHES "<[a-z/_]+\\.h>")
          list(APPEND wrong "${folder}/${file}: ${line} (a C header in a public one)")
        endif()
        if(NOT line MATCHES "[\"<]((redlease/)?[a-z_/]+)\\.hpp[\">]")
          continue()
        endif()
        set(public ${CMAKE_MATCH_2})
        string(REGEX REPLACE "^redlease/" "" target ${CMAKE_MATCH_1})
        cmake_path(GET path PARENT_PATH here)
        if(NOT public AND here AND EXISTS ${root}/${folder}/${here}/${target}.hpp)
          string(PREPEND target ${here}/)
        endif()
        layer_of(${target} to)
        if(rank_${to} GREATER rank_${from} OR (rank_${to} EQUAL rank_${from} AND NOT to STREQUAL from))
          list(APPEND wrong "${folder}/${file}: ${line} (${from} to ${to})")
        endif()
      endforeach()
    endforeach()
  endforeach()
  set(${out} "${wrong}" PARENT_SCOPE)
endfunction()

# First a tree with wrong arrows of each kind, so that a check which sees nothing is noticed.
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/include/redlease/clock.hpp "#include <chrono>\n# include \"redlease/wire/tcp.hpp\"\n")
file(WRITE ${WORK}/include/redlease/lease.hpp "#include \"redlease/types.hpp\"\n#include <redlease/redlease.hpp>\n")
file(WRITE ${WORK}/include/redlease/redlease.hpp "#include \"redlease/lease.hpp\"\n#include <hiredis/hiredis.h>\n")
file(WRITE ${WORK}/src/plan/wait_plan.cpp "#include \"redlease/plan/wait_plan.hpp\"\n#include \"wire/resp.hpp\"\n")
file(WRITE ${WORK}/src/wire/pool.cpp "#include \"fork.hpp\"\n#include \"store/names.hpp\"\n#include \"tcp.hpp\"\n")
file(WRITE ${WORK}/src/wire/tcp.hpp "#include <hiredis/hiredis.h>\n#include \"secret.hpp\"\n")
file(WRITE ${WORK}/src/store/names.hpp "#include \"service/keeper.hpp\"\n#include \"redlease/clock.hpp\"\n")
wrong_arrows(${WORK} found)
list(TRANSFORM found REPLACE ":.*\\((.*)\\)$" " \\1")
set(expected
  "include/redlease/clock.hpp base to wire"
  "include/redlease/lease.hpp lease to edge"
  "include/redlease/redlease.hpp a C header in a public one"
  "src/plan/wait_plan.cpp plan to wire"
  "src/store/names.hpp store to service"
  "src/wire/pool.cpp wire to store"
  "src/wire/tcp.hpp wire to lease")
if(NOT found STREQUAL expected)
  list(JOIN found "\n" found)
  message(FATAL_ERROR "Of the wrong arrows planted, these were found:\n${found}")
endif()

wrong_arrows(${SOURCE} found)
if(found)
  list(JOIN found "\n" found)
  message(FATAL_ERROR "Includes point down only:\n${found}\n"
    "(a file at the top that belongs to the base layer is to be named in ${CMAKE_CURRENT_LIST_FILE})")
endif()
