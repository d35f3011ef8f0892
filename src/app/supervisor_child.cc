#include "app/supervisor_child.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cerrno>

#include "base/limits.h"

namespace sluice::app {
namespace {

constexpr std::string_view kComplaint = "sluice: ";
constexpr std::size_t kComplaintsBytes = 4096;
/// So that a child that never stops writing can't keep its supervisor from everything else.
constexpr int kReadsInOneGo = 16;

std::string text(const boost::json::object& object, std::string_view key) {
    const boost::json::value* const value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return std::string(value->get_string());
}

/// False at the end of the stream.
bool read_some(int fd, std::string& bytes) {
    std::array<char, 16 * 1024> buffer;
    for (int i = 0; i < kReadsInOneGo; ++i) {
        const ssize_t count = ::read(fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno == EAGAIN;
        if (count == 0) return false;
        bytes.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return true;
}

}  // namespace

std::optional<ChildEvent> parse_child_line(std::string_view line) {
    if (!line.starts_with('{')) return std::nullopt;
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(line, error);
    if (error || !value.is_object()) return std::nullopt;
    const boost::json::object& object = value.get_object();
    ChildEvent event{
        .url = text(object, "url"), .admin = text(object, "admin"), .http = text(object, "http")};
    const std::string kind = text(object, "event");
    if (kind != "ready" && kind != "listening") return std::nullopt;
    if (kind == "listening") event.kind = ChildEvent::Kind::kListening;
    if (event.url.empty()) return std::nullopt;
    return event;
}

void LineCutter::feed(std::string_view bytes,
                      const std::function<void(std::string_view)>& on_line) {
    while (!bytes.empty()) {
        const std::size_t newline = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, newline);
        line_.append(piece.substr(0, limits::kChildLineBytes - line_.size()));
        if (newline == std::string_view::npos) return;
        on_line(line_);
        line_.clear();
        bytes.remove_prefix(newline + 1);
    }
}

void LineCutter::finish(const std::function<void(std::string_view)>& on_line) {
    if (!line_.empty()) on_line(line_);
    line_.clear();
}

SupervisedChild::SupervisedChild(Subprocess process, UniqueFd output, UniqueFd errors,
                                 Events events)
    : process_(std::move(process)),
      output_{std::move(output), {}},
      errors_{std::move(errors), {}},
      events_(std::move(events)) {}

Result<SupervisedChild> SupervisedChild::start(std::vector<std::string> argv, Events events) {
    Result<Pipe> output = make_pipe();
    if (!output) return std::unexpected(output.error());
    Result<Pipe> errors = make_pipe();
    if (!errors) return std::unexpected(errors.error());
    for (const Pipe* pipe : {&*output, &*errors}) {
        ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
    }
    auto process = Subprocess::spawn(
        {.argv = std::move(argv), .fds = {{output->write.get(), 1}, {errors->write.get(), 2}}});
    if (!process) return std::unexpected(process.error());
    return SupervisedChild(std::move(*process), std::move(output->read), std::move(errors->read),
                           std::move(events));
}

void SupervisedChild::read_stream(Stream& stream,
                                  const std::function<void(std::string_view)>& on_line) {
    if (!stream.fd) return;
    std::string bytes;
    const bool open = read_some(stream.fd.get(), bytes);
    stream.lines.feed(bytes, on_line);
    if (open) return;
    stream.lines.finish(on_line);
    stream.fd.reset();
}

void SupervisedChild::read() {
    read_stream(output_, [this](std::string_view line) {
        if (const auto event = parse_child_line(line)) events_.on_event(*event);
    });
    read_stream(errors_, [this](std::string_view line) { take_error_line(line); });
}

void SupervisedChild::take_error_line(std::string_view line) {
    if (!keep_complaints_ || !line.starts_with(kComplaint)) {
        events_.on_log_line(line);
        return;
    }
    if (complaints_.size() + line.size() > kComplaintsBytes) return;
    if (!complaints_.empty()) complaints_ += '\n';
    complaints_ += line;
}

std::optional<ExitStatus> SupervisedChild::poll() {
    const auto ended = process_.poll();
    if (ended) read();
    return ended;
}

}  // namespace sluice::app
