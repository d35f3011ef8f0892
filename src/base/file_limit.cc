#include "base/file_limit.h"

#include <sys/resource.h>

namespace sluice {

std::uint64_t raise_file_limit() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    const rlimit wanted{.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? wanted.rlim_cur : files.rlim_cur;
}

}  // namespace sluice
