#include "gateway/record_endpoints.h"

#include <fmt/format.h>

#include <utility>

#include "gateway/answer_writer.h"
#include "gateway/record_query.h"
#include "gateway/where_report.h"
#include "net/query.h"
#include "record/card.h"
#include "record/record_reader.h"

namespace sluice::gateway {
namespace {

using protocol::ApiError;
using protocol::ApiErrorCode;
using record::RecordPages;
using record::RecordReader;

constexpr std::size_t kThreads = 1;
constexpr std::size_t kWaiting = 64;
/// A reader that takes less is waited for.
constexpr std::size_t kBacklogBytes = std::size_t{1} << 20U;
constexpr std::chrono::milliseconds kBacklogPause{10};
/// What is over before the question is part of the answer, unless writing takes longer.
constexpr std::chrono::seconds kFlushPatience{2};

net::HttpResponse error_response(const ApiError& error) {
    return net::HttpResponse::json(protocol::http_status(error.code), protocol::to_json(error));
}

net::HttpResponse error_response(const Error& error) {
    if (error.code() == ErrorCode::kNotFound)
        return error_response(
            ApiError{.code = ApiErrorCode::kNotFound, .message = error.message(), .param = {}});
    if (error.code() == ErrorCode::kInvalid) return error_response(protocol::to_api_error(error));
    return error_response(
        ApiError{.code = ApiErrorCode::kInternal, .message = error.to_string(), .param = {}});
}

std::string_view state_of(const Generation& generation) {
    switch (generation.progress().phase()) {
        case dispatch::Phase::kPrefill: return "prefill";
        case dispatch::Phase::kDecode: return "decode";
        default: return "queued";
    }
}

/// Rows on their way to one reader: a page is read on the thread that reads, written on the loop's, and
/// only then, once the reader has taken most of it, the next one is read.
class RowStream : public std::enable_shared_from_this<RowStream> {
public:
    RowStream(net::EventLoop& loop, TaskPool& tasks, Exchange exchange,
              std::shared_ptr<record::RecordStore> store, record::RecordQuery query)
        : loop_(loop),
          tasks_(tasks),
          exchange_(std::move(exchange)),
          store_(std::move(store)),
          query_(std::move(query)) {}

    void start() {
        exchange_->on_client_gone([weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->gone_ = true;
        });
        read_next();
    }

private:
    void read_next() {
        const bool accepted = tasks_.submit([self = shared_from_this()] {
            auto page = self->read_page();
            self->loop_.post([self, page = std::move(page)] { self->write(page); });
        });
        if (!accepted) write(std::unexpected(Error(ErrorCode::kExhausted, "too many readers")));
    }

    Result<std::string> read_page() {
        if (!pages_) {
            (void)store_->flush(kFlushPatience);
            auto reader = RecordReader::open(store_->database_path());
            if (!reader) return std::unexpected(reader.error());
            reader_ = std::make_unique<RecordReader>(std::move(*reader));
            auto pages = reader_->pages(query_, unix_ms());
            if (!pages) return std::unexpected(pages.error());
            pages_ = std::move(*pages);
        }
        std::string text;
        const auto more = pages_->next([&](const record::RequestRow& row, double cost) {
            text += record::to_json(row, cost);
            text += '\n';
            return true;
        });
        if (!more) return std::unexpected(more.error());
        last_ = !*more;
        return text;
    }

    void write(const Result<std::string>& page) {
        if (gone_) return;
        if (!page) {
            if (begun_) return exchange_->abort();
            return exchange_->respond(error_response(page.error()));
        }
        if (!std::exchange(begun_, true))
            exchange_->begin_stream(200, {{"Content-Type", "application/jsonl"}});
        if (!page->empty()) exchange_->write(*page);
        if (last_) return exchange_->end_stream();
        go_on();
    }

    void go_on() {
        if (gone_) return;
        if (exchange_->backlog_bytes() <= kBacklogBytes) return read_next();
        pause_ = loop_.call_after(kBacklogPause, [self = shared_from_this()] { self->go_on(); });
    }

    net::EventLoop& loop_;
    TaskPool& tasks_;
    Exchange exchange_;
    std::shared_ptr<record::RecordStore> store_;
    record::RecordQuery query_;
    std::unique_ptr<RecordReader> reader_;
    std::optional<RecordPages> pages_;
    bool last_ = false;
    bool begun_ = false;
    bool gone_ = false;
    net::Timer pause_;
};

net::HttpResponse make_where(const std::string& database, const std::string& id) {
    auto reader = RecordReader::open(database);
    if (!reader) return error_response(reader.error());
    const auto manifest = reader->manifest(id);
    if (!manifest) return error_response(manifest.error());
    if (*manifest) return net::HttpResponse::json(200, versions_json(id, **manifest));
    std::optional<record::RequestRow> answer;
    std::vector<record::RequestRow> copies;
    // A client may use an id again: the newest answer counts.
    const auto done =
        reader->for_each({.id = id, .limit = 64}, 0, [&](const record::RequestRow& row, double) {
            if (row.role == RequestRole::kShadow) {
                copies.push_back(row);
            } else {
                answer = row;
            }
            return true;
        });
    if (!done) return error_response(done.error());
    if (!answer && !copies.empty()) answer = std::exchange(copies, {}).back();
    if (!answer) {
        return error_response(
            Error::not_found(fmt::format("no request and no fingerprint is called \"{}\"", id)));
    }
    const auto manifests = reader->manifests();
    if (!manifests) return error_response(manifests.error());
    return net::HttpResponse::json(200, where_json(*answer, copies, *manifests));
}

net::HttpResponse make_card(const std::string& database, const record::CardOptions& options,
                            std::string_view format) {
    auto reader = RecordReader::open(database);
    if (!reader) return error_response(reader.error());
    auto manifests = reader->manifests();
    if (!manifests) return error_response(manifests.error());
    record::CardBuilder builder(options, std::move(*manifests));
    const auto done =
        reader->for_each({.since_ms = options.from_ms, .until_ms = options.to_ms}, options.to_ms,
                         [&](const record::RequestRow& row, double cost) {
                             builder.add(row, cost);
                             return true;
                         });
    if (!done) return error_response(done.error());
    const record::Card card = builder.build();
    if (format == "text") return net::HttpResponse::text(200, to_text(card));
    if (format != "html") return net::HttpResponse::json(200, to_json(card));
    net::HttpResponse page = net::HttpResponse::text(200, to_html(card));
    page.headers.set("Content-Type", "text/html; charset=utf-8");
    page.headers.set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    return page;
}

}  // namespace

RecordEndpoints::RecordEndpoints(net::EventLoop& loop, std::shared_ptr<record::RecordStore> store,
                                 std::function<const Generation*(std::string_view id)> find)
    : loop_(loop), store_(std::move(store)), find_(std::move(find)), tasks_(kThreads, kWaiting) {}

void RecordEndpoints::add_to(Router& admin) {
    admin.add("GET", "/admin/records",
              [this](const Exchange& exchange, std::string_view) { records(exchange); });
    admin.add("GET", "/admin/where/",
              [this](const Exchange& exchange, std::string_view id) { where(exchange, id); });
    admin.add("GET", "/admin/card",
              [this](const Exchange& exchange, std::string_view) { card(exchange); });
}

void RecordEndpoints::answer_later(const Exchange& exchange, Answer answer) {
    if (!store_) {
        return exchange->respond(
            error_response(Error::not_found("no records are kept; `[record] path` says where to")));
    }
    const bool accepted =
        tasks_.submit([&loop = loop_, store = store_, exchange, answer = std::move(answer)] {
            (void)store->flush(kFlushPatience);
            loop.post([exchange, response = answer()] { exchange->respond(response); });
        });
    if (!accepted) {
        exchange->respond(error_response(ApiError{.code = ApiErrorCode::kQueueFull,
                                                  .message = "too many readers of records",
                                                  .param = {}}));
    }
}

void RecordEndpoints::records(const Exchange& exchange) {
    const auto fields = net::parse_query(exchange->request().query);
    if (!fields) return exchange->respond(error_response(fields.error()));
    const auto query = read_record_query(*fields, unix_ms());
    if (!query) return exchange->respond(error_response(query.error()));
    if (!store_) return answer_later(exchange, {});
    std::make_shared<RowStream>(loop_, tasks_, exchange, store_, *query)->start();
}

void RecordEndpoints::where(const Exchange& exchange, std::string_view id) {
    if (const Generation* const live = find_(id)) {
        return exchange->respond(
            net::HttpResponse::json(200, where_json(live->report(), state_of(*live))));
    }
    const std::string database = store_ ? store_->database_path() : std::string();
    answer_later(exchange, [database, id = std::string(id)] { return make_where(database, id); });
}

void RecordEndpoints::card(const Exchange& exchange) {
    const auto fields = net::parse_query(exchange->request().query);
    if (!fields) return exchange->respond(error_response(fields.error()));
    const auto options = read_card_query(*fields, unix_ms());
    if (!options) return exchange->respond(error_response(options.error()));
    const auto format = fields->find("format");
    const std::string shape = format == fields->end() ? "json" : format->second;
    if (shape != "json" && shape != "text" && shape != "html")
        return exchange->respond(error_response(Error::invalid("is json, text or html", "format")));
    const std::string database = store_ ? store_->database_path() : std::string();
    answer_later(exchange, [database, options = *options, shape] {
        return make_card(database, options, shape);
    });
}

}  // namespace sluice::gateway
