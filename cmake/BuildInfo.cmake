# Writes build/build_info.cc (src/base/build_info.h). CMake runs again after each commit, because it
# depends on git's log of HEAD; the file changes, and is compiled, only if the commit did.
set(SLUICE_COMMIT unknown)
find_package(Git QUIET)
if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD
                    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE commit
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD
                    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE head_log
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
        set(SLUICE_COMMIT ${commit})
        get_filename_component(head_log "${head_log}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
        if(EXISTS ${head_log})
            set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${head_log})
        endif()
    endif()
endif()

string(STRIP "${CMAKE_CXX_FLAGS}" flags)
if(SLUICE_SANITIZE)
    string(APPEND flags " -fsanitize=${SLUICE_SANITIZE}")
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/build_info.cc @ONLY CONTENT
[[#include "base/build_info.h"

namespace sluice::build_info {

const char* const kVersion = "@PROJECT_VERSION@";
const char* const kCommit = "@SLUICE_COMMIT@";
const char* const kFlags = "@flags@";

}  // namespace sluice::build_info
]])
