#include "app/up_report.h"

#include <fmt/core.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>

#include "app/command.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

void print_now(std::string_view line) {
    print(fmt::format("{}\n", line));
    std::fflush(stdout);
}

class UserReport final : public UpReport {
public:
    explicit UserReport(Output output) : output_(output) {}

    /// In the foreground the processes' own log lines are on the screen.
    void progress(std::string_view) override {}
    void ready(const ServiceState& state) override { print_ready(state, output_); }
    void restarted(const ServiceState& state) override {
        if (output_ == Output::kJson) print_now(to_json(state, "restarted"));
    }
    void failed(std::string_view complaint) override { fmt::print(stderr, "{}\n", complaint); }

private:
    Output output_;
};

class PipeReport final : public UpReport {
public:
    explicit PipeReport(UniqueFd pipe) : pipe_(std::move(pipe)) {}

    void progress(std::string_view message) override {
        send(json::serialize(json::object{{"event", "progress"}, {"message", message}}));
    }
    void ready(const ServiceState& state) override {
        send(to_json(state));
        pipe_.reset();
    }
    void restarted(const ServiceState&) override {}
    void failed(std::string_view complaint) override {
        send(json::serialize(json::object{{"event", "failed"}, {"message", complaint}}));
        pipe_.reset();
    }

private:
    /// Nobody may be there any more to read it; then nobody needs it.
    void send(std::string line) {
        line += '\n';
        std::string_view rest = line;
        while (pipe_ && !rest.empty()) {
            const ssize_t count = ::write(pipe_.get(), rest.data(), rest.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return pipe_.reset();
            rest.remove_prefix(static_cast<std::size_t>(count));
        }
    }

    UniqueFd pipe_;
};

}  // namespace

void print_ready(const ServiceState& state, Output output) {
    print_now(output == Output::kJson ? to_json(state) : ready_line(state));
}

std::unique_ptr<UpReport> report_to_user(Output output) {
    return std::make_unique<UserReport>(output);
}

std::unique_ptr<UpReport> report_to_pipe(UniqueFd pipe) {
    return std::make_unique<PipeReport>(std::move(pipe));
}

std::optional<ReportLine> parse_report_line(std::string_view line) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    if (error || !value.is_object()) return std::nullopt;
    const json::object& object = value.get_object();
    const auto text = [&object](std::string_view key) -> std::string {
        const json::value* const found = object.if_contains(key);
        if (found == nullptr || !found->is_string()) return {};
        return std::string(found->get_string());
    };
    const std::string event = text("event");
    if (event == "progress") return ReportLine{ReportLine::Kind::kProgress, text("message")};
    if (event == "failed") return ReportLine{ReportLine::Kind::kFailed, text("message")};
    auto state = parse_service_state(line);
    if (event != "ready" || !state) return std::nullopt;
    return ReportLine{ReportLine::Kind::kReady, {}, std::move(*state)};
}

}  // namespace sluice::app
