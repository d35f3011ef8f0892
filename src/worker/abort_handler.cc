#include "worker/abort_handler.h"

#include "port/abort.h"
#include "worker/answers.h"

namespace sluice::worker {

net::HttpResponse handle_abort(Service& service, const net::HttpRequest& request) {
    const auto abort = port::parse_abort_request(request.body);
    if (!abort) {
        return error_answer(400, port::kInvalidRequest, abort.error().message(),
                            abort.error().place());
    }
    const auto found = service.generations.find(abort->rid);
    if (found != service.generations.end()) {
        const auto generation = found->second;  // It may end at once.
        generation->abort("aborted");
    }
    return net::HttpResponse::json(200, "{}");
}

}  // namespace sluice::worker
