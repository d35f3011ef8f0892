#pragma once

// The cache at the admin address, for `sluice ctl kv`:
//   GET, POST {"url","http"?,"password_env"?} and DELETE ?url= /admin/kv/nodes: which nodes there are;
//     who adds one hears as "unreachable" at which of its addresses nobody answers: it is added all the same;
//   GET /admin/kv/status: what each worker and node holds;
//   POST /admin/kv/drop {"tenant"?,"class"?,"name"?}: all of them forget what fits;
//   POST /admin/kv/pin {"seconds", and "names" | "id" of a request | "request", a chat's body, with
//     "tenant"? and "conversation"?}: all of them keep these blocks for so long;
//   POST /admin/kv/verify: all of them read again what they hold.
// The last three answer with what each did, and their sum.
//
// Belongs to the event loop's thread.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gateway/cache_rules.h"
#include "gateway/kv_history.h"
#include "gateway/kv_member_push.h"
#include "gateway/kv_members.h"
#include "gateway/kv_node_probe.h"
#include "gateway/kv_survey.h"
#include "gateway/pool_set.h"
#include "gateway/router.h"

namespace sluice::gateway {

class KvConsole {
public:
    /// They outlive it.
    struct Services {
        net::EventLoop& loop;
        net::HttpClient& client;
        const PoolSet& pools;
        KvMembers& members;
        KvMemberPush& push;
        const KvHistory& history;
        /// Answers a chat whose prefix is to be pinned; of the stable pool.
        std::function<const Pool&()> stable;
        std::map<std::string, CacheRules, std::less<>> caches;  ///< By tenant.
    };

    explicit KvConsole(Services services) : services_(std::move(services)) {}
    KvConsole(const KvConsole&) = delete;
    KvConsole& operator=(const KvConsole&) = delete;

    void add_to(Router& routes);

private:
    void add_node(const Exchange& exchange);
    void remove_node(const Exchange& exchange);
    void status(const Exchange& exchange);
    void drop(const Exchange& exchange);
    void pin(const Exchange& exchange);
    void verify(const Exchange& exchange);
    void order(const Exchange& exchange, KvQuestion question);

    [[nodiscard]] std::vector<std::string> worker_urls() const;
    void ask_all(KvQuestion question, std::function<void(std::vector<KvAnswer>)> on_done);

    Services services_;
    std::uint64_t surveys_begun_ = 0;
    std::map<std::uint64_t, std::unique_ptr<KvSurvey>> surveys_;
    std::uint64_t probes_begun_ = 0;
    std::map<std::uint64_t, std::unique_ptr<KvNodeProbe>> probes_;
};

}  // namespace sluice::gateway
