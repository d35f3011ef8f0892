# Cross-compiles for AArch64 with Debian's compiler, against the packages that tools/neon.sh unpacks,
# and runs what it built under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(packages ${CMAKE_CURRENT_LIST_DIR}/../build-neon/packages ABSOLUTE)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${packages}/usr/include/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${packages} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${packages}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${packages})

# -cpu max has the dot product, which the plain NEON target must do without.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu)
