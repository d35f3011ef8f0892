#pragma once

// Hands the list of cache nodes to the workers: to each that says it follows an older one, which is
// what new and restarted workers say, and to all of them when it changes. A worker that could not be
// told is told again when it next says how it is. One that refuses a change, because it follows a list
// that is newer than the change, gets it with an epoch that is newer still, as all others do. What is
// refused and is no news is another gateway's concern: two lists don't overtake each other for ever.
//
// Belongs to the event loop's thread.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "discovery/collected_call.h"
#include "gateway/kv_members.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

class KvMemberPush {
public:
    /// All outlive it.
    KvMemberPush(net::EventLoop& loop, net::HttpClient& client, KvMembers& members)
        : loop_(loop), client_(client), members_(members) {}

    /// The worker at `url` follows `epoch`.
    void on_report(const std::string& url, std::uint64_t epoch);
    /// The list has changed.
    void tell(const std::vector<std::string>& urls);

private:
    struct Telling {
        std::uint64_t epoch = 0;
        bool is_news = false;  ///< The list has just changed.
        std::unique_ptr<discovery::CollectedCall> call;
    };

    void tell(const std::string& url, bool is_news);
    void overtake();
    void on_answer(const std::string& url, const Result<discovery::CollectedAnswer>& answer);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    KvMembers& members_;
    std::map<std::string, Telling> tellings_;  ///< By worker.
    std::set<std::string> told_;               ///< Of the last change, whom.
    std::set<std::string> refused_by_;         ///< The last change.
};

}  // namespace sluice::gateway
