#include "app/up_welcome.h"

#include <fmt/core.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "app/command.h"

namespace sluice::app {
namespace {

void print_piece(std::string_view text) {
    print(text);
    std::fflush(stdout);
}

}  // namespace

Welcome::Welcome(ServiceState state, Output output, std::string stop)
    : state_(std::move(state)),
      output_(output),
      stop_(std::move(stop)),
      request_(state_.url, [output](std::string_view text) {
          if (output == Output::kText) print_piece(text);
      }) {}

int Welcome::run() {
    if (output_ == Output::kText) print_piece(fmt::format("\n> {}\n", kFirstQuestion));
    const Result<FirstAnswer> answer = request_.run();
    if (!answer && answer.error().code() == ErrorCode::kCancelled) return kInterrupted;
    if (!answer) {
        return fail(kFailed,
                    fmt::format("the service is up, but did not answer the first request: {}",
                                answer.error().to_string()));
    }
    if (output_ == Output::kJson) {
        print_piece(
            boost::json::serialize(boost::json::object{
                {"event", "first_answer"}, {"model", answer->model}, {"text", answer->text}}) +
            "\n");
    } else {
        print_how_to(answer->model);
    }
    return kDone;
}

void Welcome::print_how_to(const std::string& model) const {
    print_piece(fmt::format("\n\nAddress: {} (admin {})\nAsk it yourself:\n{}\nStop it with {}\n",
                            state_.url, state_.admin, curl_line(state_.url, model), stop_));
}

}  // namespace sluice::app
