// The test program's own `main`: called as `engine`, `kvnode` or `gateway` it stands in for those commands,
// called as `up` or `down` it is the real command. So the `up` under test, which starts processes of
// its own program, gets stand-ins, and nothing in it has to know.
//
// A stand-in keeps the contract of the real one: one line of JSON when it is bound and ready, exit
// code 3 and one line if it can't start, SIGTERM ends it. What it does wrong is the name of its
// model. It writes its command to the file $STAND_IN_ENDED at its end.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>

#include "app/command.h"
#include "base/unique_fd.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "net/sse.h"

namespace sluice::app {

Run define_down(CLI::App& command);
Run define_up(CLI::App& command);

namespace {

struct Flags {
    std::string state;
    std::string model;
    std::uint16_t port = 0;
    std::uint16_t admin_port = 0;
    std::vector<std::string> workers{};
    std::string threads{};
    std::string dp{};
    std::string config{};
    std::string keys{};
    std::string records{};
    std::uint16_t http_port = 0;
    std::string ssd{};
    std::vector<std::string> stores{};
    std::vector<std::string> nodes{};
    bool json = false;
};

void say(const std::string& line) {
    print(line + "\n");
    std::fflush(stdout);
}

void note_end(std::string_view role) {
    const char* const path = std::getenv("STAND_IN_ENDED");
    if (path == nullptr) return;
    const UniqueFd file(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string line = std::string(role) + "\n";
    [[maybe_unused]] const ssize_t count = ::write(file.get(), line.data(), line.size());
}

void answer(const std::shared_ptr<net::HttpExchange>& exchange, const std::string& model) {
    if (exchange->request().path == "/v1/models") {
        exchange->respond(net::HttpResponse::json(200, R"({"data":[{"id":")" + model + R"("}]})"));
        return;
    }
    if (model == "mute") {
        exchange->respond(net::HttpResponse::json(500, R"({"error":{"message":"no voice"}})"));
        return;
    }
    exchange->begin_stream(200, {{"Content-Type", "text/event-stream"}});
    for (const char* piece : {"Par", "is", "\\u001b."}) {
        exchange->write(net::sse_event(
            fmt::format(R"({{"choices":[{{"delta":{{"content":"{}"}}}}]}})", piece)));
    }
    exchange->write(net::sse_event("[DONE]"));
    exchange->end_stream();
}

std::unique_ptr<net::HttpServer> listen(net::EventLoop& loop, std::uint16_t port,
                                        const std::string& model) {
    auto server = net::HttpServer::listen(
        loop, {.port = port}, [model](const auto& exchange) { answer(exchange, model); });
    if (server) return std::move(*server);
    std::exit(fail(kCannotStart, server.error()));
}

std::string url(const net::HttpServer& server) {
    return fmt::format("http://127.0.0.1:{}", server.port());
}

int run_stand_in(const std::string& role, const Flags& flags) {
    const bool is_engine = role == "engine";
    if (flags.model == "missing") return fail(kCannotStart, "missing: no such file");
    if (flags.model == "crash") ::raise(SIGKILL);
    if (flags.model == "quitter") return kDone;
    net::EventLoop loop;
    const auto server = listen(loop, flags.port, flags.model);
    const auto admin = is_engine ? nullptr : listen(loop, flags.admin_port, flags.model);
    const std::string at =
        is_engine ? fmt::format(R"("url":"{}")", url(*server))
                  : fmt::format(R"("url":"{}","admin":"{}")", url(*server), url(*admin));
    loop.on_signal({SIGTERM}, [&](int) {
        if (is_engine && flags.model == "deaf") return;
        note_end(role);
        loop.stop();
    });
    fmt::print(stderr, "{} with {} threads, dp {}\n", role, flags.threads, flags.dp);
    for (const auto* const each : {&flags.workers, &flags.stores, &flags.nodes})
        for (const std::string& url : *each) fmt::print(stderr, "{} of {}\n", role, url);
    if (flags.model == "never-ready") {
        say("not JSON");
        // Whoever waits at this named pipe goes on now.
        if (const char* const path = std::getenv("STAND_IN_STARTED")) {
            const UniqueFd started(::open(path, O_WRONLY | O_CLOEXEC));
        }
    } else {
        if (!is_engine) say(fmt::format(R"({{"event":"listening",{},"pid":{}}})", at, ::getpid()));
        say(fmt::format(R"({{"event":"ready",{},"pid":{}}})", at, ::getpid()));
    }
    loop.run();
    return kDone;
}

int run_node(const Flags& flags) {
    net::EventLoop loop;
    const auto server = listen(loop, flags.port, "");
    const auto http = listen(loop, flags.http_port, "");
    loop.on_signal({SIGTERM}, [&](int) {
        note_end("kvnode");
        loop.stop();
    });
    fmt::print(stderr, "kvnode with {}\n", flags.ssd);
    say(fmt::format(R"({{"event":"ready","url":"redis://127.0.0.1:{}","http":"{}","pid":{}}})",
                    server->port(), url(*http), ::getpid()));
    loop.run();
    return kDone;
}

void define_node(CLI::App& command, Flags& flags) {
    command.add_option("--port", flags.port)->required();
    command.add_option("--http-port", flags.http_port)->required();
    command.add_option("--ssd", flags.ssd);
    for (const char* name : {"--dram", "--retain"})
        command.add_option(name, [](const CLI::results_t&) { return true; })->required();
    command.add_flag("--json", flags.json)->required();
}

int stand_in(int argc, char** argv) {
    Flags flags;
    CLI::App app;
    app.require_subcommand(1);
    for (const char* role : {"engine", "gateway"}) {
        CLI::App* const command = app.add_subcommand(role);
        command->add_option("--model", flags.model);
        command->add_option("--port", flags.port)->required();
        command->add_option("--config", flags.config);
        command->add_flag("--json", flags.json)->required();
    }
    define_node(*app.add_subcommand("kvnode"), flags);
    app.get_subcommand("engine")->add_option("--kv-store", flags.stores);
    app.get_subcommand("gateway")->add_option("--kv-node", flags.nodes);
    app.get_subcommand("engine")->add_option("--threads", flags.threads)->required();
    app.get_subcommand("engine")->add_option("--dp", flags.dp);
    app.get_subcommand("gateway")->add_option("--admin-port", flags.admin_port)->required();
    app.get_subcommand("gateway")->add_option("--worker", flags.workers)->required();
    app.get_subcommand("gateway")->add_option("--keys", flags.keys);
    app.get_subcommand("gateway")->add_option("--records", flags.records);
    app.get_subcommand("gateway")->add_option("--state", flags.state);
    CLI11_PARSE(app, argc, argv);
    const std::string role = argv[1];
    return role == "kvnode" ? run_node(flags) : run_stand_in(role, flags);
}

int command(int argc, char** argv) {
    CLI::App app;
    app.require_subcommand(1);
    const Run up = define_up(*app.add_subcommand("up"));
    const Run down = define_down(*app.add_subcommand("down"));
    CLI11_PARSE(app, argc, argv);
    const int code = app.get_subcommand("up")->parsed() ? up() : down();
    std::fflush(stdout);
    return code;
}

}  // namespace
}  // namespace sluice::app

int main(int argc, char** argv) {
    const std::string_view name = argc > 1 ? argv[1] : "";
    if (name == "engine" || name == "kvnode" || name == "gateway")
        return sluice::app::stand_in(argc, argv);
    if (name == "up" || name == "down") return sluice::app::command(argc, argv);
    testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
