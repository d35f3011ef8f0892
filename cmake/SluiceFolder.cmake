# One static library and one test binary per folder of src/.
#
#   sluice_folder(routing INCLUDES kv port base LIBRARIES fmt::fmt)
#
# INCLUDES names the folders whose headers this one may include (docs/folders.md is the contract and
# tests/base/include_table_test.cc checks it). New .cc files and tests are found by themselves.
function(sluice_folder NAME)
    cmake_parse_arguments(FOLDER "" "" "INCLUDES;LIBRARIES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${NAME}/*.cc)
    list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
    add_library(sluice_${NAME} STATIC ${sources})
    target_include_directories(sluice_${NAME} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    list(TRANSFORM FOLDER_INCLUDES PREPEND sluice_)
    target_link_libraries(sluice_${NAME} PUBLIC ${FOLDER_INCLUDES} ${FOLDER_LIBRARIES} Threads::Threads)

    if(SLUICE_BUILD_TESTS)
        sluice_test(${NAME})
    endif()
    if(SLUICE_FUZZ)
        sluice_fuzz(${NAME})
    endif()
endfunction()

# One precompiled header for all tests, and what tells them where they are: tests/places.h, or the
# macros SLUICE_SOURCE_DIR and SLUICE_BINARY_DIR. The macros come from a header and not from -D,
# because with a precompiled header ccache hashes every -D, and a cached test must fit other clones.
function(sluice_test_headers)
    if(TARGET sluice_test_headers)
        return()
    endif()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_places.h CONTENT
         "#define SLUICE_SOURCE_DIR \"${CMAKE_SOURCE_DIR}\"\n#define SLUICE_BINARY_DIR \"${CMAKE_BINARY_DIR}\"\n")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_places.cc @ONLY CONTENT
[[#include "tests/places.h"

const char* const sluice::kSourceDir = "@CMAKE_SOURCE_DIR@";
const char* const sluice::kBinaryDir = "@CMAKE_BINARY_DIR@";
]])
    add_library(sluice_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_places.cc)
    target_include_directories(sluice_test_headers PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(sluice_test_headers PRIVATE GTest::gtest)
    target_precompile_headers(sluice_test_headers PRIVATE <gtest/gtest.h> <expected> <functional>
                              <map> <memory> <string> <string_view> <vector>)
endfunction()

# tests/NAME/*_test.cc become build/tests/NAME_test; each GoogleTest case is a ctest case.
function(sluice_test NAME)
    file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${NAME}/*.cc)
    list(FILTER tests EXCLUDE REGEX "_fuzz\\.cc$")
    if(NOT tests)
        return()
    endif()
    add_executable(${NAME}_test ${tests})
    set_target_properties(${NAME}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${NAME}_test PRIVATE ${CMAKE_SOURCE_DIR})
    target_compile_options(${NAME}_test PRIVATE "SHELL:-imacros ${CMAKE_BINARY_DIR}/test_places.h")
    target_link_libraries(${NAME}_test PRIVATE sluice_${NAME} Boost::json GTest::gmock GTest::gtest_main
                          sluice_test_headers)
    if(TARGET sluice_test_support)
        target_link_libraries(${NAME}_test PRIVATE sluice_test_support)
    endif()
    sluice_test_headers()
    target_precompile_headers(${NAME}_test REUSE_FROM sluice_test_headers)
    gtest_discover_tests(${NAME}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 300 LABELS ${NAME})
endfunction()

# tests/NAME/*_fuzz.cc become one libFuzzer binary each, build-fuzz/fuzz/WHAT_fuzz.
function(sluice_fuzz NAME)
    file(GLOB targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${NAME}/*_fuzz.cc)
    if(NOT TARGET fuzz_targets)
        add_custom_target(fuzz_targets)  # Them alone, without the rest of the program.
    endif()
    foreach(source ${targets})
        get_filename_component(target ${source} NAME_WE)
        add_executable(${target} ${source})
        add_dependencies(fuzz_targets ${target})
        set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
        target_compile_definitions(${target} PRIVATE SLUICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
        target_link_libraries(${target} PRIVATE sluice_${NAME})
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
endfunction()
