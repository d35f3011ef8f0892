#pragma once

// /admin/records, /admin/where/ID and /admin/card: what the records say, read beside the event loop.
//
//   GET /admin/records?since=1h&pool=P&role=answer|shadow&id=ID&limit=N   rows as JSON lines
//   GET /admin/where/ID       a request, now or afterwards; also a fingerprint
//   GET /admin/card?baseline=A&candidate=B&since=1h&min_samples=N&format=json|text|html
//
// Belongs to the event loop's thread.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/task_pool.h"
#include "gateway/generation.h"
#include "gateway/router.h"
#include "net/event_loop.h"
#include "record/record_store.h"

namespace sluice::gateway {

class RecordEndpoints {
public:
    /// `find` looks among the requests that live. `store` may be null: then there are no records.
    RecordEndpoints(net::EventLoop& loop, std::shared_ptr<record::RecordStore> store,
                    std::function<const Generation*(std::string_view id)> find);

    void add_to(Router& admin);

private:
    using Answer = std::function<net::HttpResponse()>;

    void records(const Exchange& exchange);
    void where(const Exchange& exchange, std::string_view id);
    void card(const Exchange& exchange);
    /// Makes the answer on the thread that reads, or refuses if too many wait.
    void answer_later(const Exchange& exchange, Answer answer);

    net::EventLoop& loop_;
    std::shared_ptr<record::RecordStore> store_;
    std::function<const Generation*(std::string_view id)> find_;
    TaskPool tasks_;  ///< Ends first: what it runs uses the others.
};

}  // namespace sluice::gateway
