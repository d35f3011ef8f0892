# Flags that hold for every target. Exactness (docs/exactness.md) forbids contraction, fast maths and
# per-machine flags: the bits of a result must not depend on how this file was configured.
add_compile_options(-Wall -Wextra -Werror -ffp-contract=off -g1 -fno-omit-frame-pointer)
# Designated initialisers name what differs from the defaults; that is their point.
add_compile_options(-Wno-missing-field-initializers)
add_compile_definitions(_GLIBCXX_ASSERTIONS)

if(SLUICE_SANITIZE)
    add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${SLUICE_SANITIZE})
    # GCC 12 reports false positives inside libstdc++ and Boost when it inlines instrumented code.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
                            -Wno-stringop-overflow -Wno-stringop-overread)
    endif()
    if(SLUICE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_compile_options(-Wno-tsan)  # Boost.Asio uses fences, which GCC's tsan does not model.
    endif()
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT CMAKE_CROSSCOMPILING)  # GCC's cross linker is looked for under other names.
    add_link_options(-fuse-ld=mold)
endif()

# The same bytes whatever the folder is called: no path of this machine in a binary, and ccache hits
# from another clone, as in CI.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Precompiled headers and ccache agree only with this sloppiness; the other two make keys free of
    # this folder's name.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        ${CCACHE_PROGRAM})
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
