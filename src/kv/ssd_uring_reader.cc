#include "kv/ssd_uring_reader.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace sluice::kv {

SsdUringReader::SsdUringReader(const SsdReaderOptions& options, std::shared_ptr<SsdBuffers> buffers,
                               const SsdFaults& faults)
    : options_(options), buffers_(std::move(buffers)), faults_(faults) {}

Result<std::unique_ptr<SsdUringReader>> SsdUringReader::start(const SsdReaderOptions& options,
                                                              std::shared_ptr<SsdBuffers> buffers,
                                                              const SsdFaults& faults) {
    std::unique_ptr<SsdUringReader> reader(new SsdUringReader(options, std::move(buffers), faults));
    reader->wakeups_.reset(::eventfd(0, EFD_CLOEXEC));
    const auto entries = static_cast<unsigned>(options.depth + 1);  // One more for the wake-ups.
    // Since Linux 5.19 a thread that comes by itself needn't be interrupted for what has ended.
    int error = ::io_uring_queue_init(entries, &reader->ring_, IORING_SETUP_COOP_TASKRUN);
    if (error == -EINVAL) error = ::io_uring_queue_init(entries, &reader->ring_, 0);
    if (error < 0 || !reader->wakeups_) {
        return std::unexpected(Error(ErrorCode::kUnavailable,
                                     Error::io("io_uring can't be used", -error).to_string()));
    }
    reader->thread_ = std::thread([at = reader.get()] { at->work(); });
    return reader;
}

SsdUringReader::~SsdUringReader() {
    if (!thread_.joinable()) return;
    stop();
    thread_.join();
    ::io_uring_queue_exit(&ring_);
}

void SsdUringReader::wake() {
    const std::uint64_t one = 1;
    const ssize_t count = ::write(wakeups_.get(), &one, sizeof one);
    SLUICE_ASSERT(count == sizeof one);
}

void SsdUringReader::work() {
    listen();
    do {
        run_tasks();
        take_reads();
        hand_over();
        if (!nothing_to_do()) continue;
        const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
        SLUICE_ASSERT(submitted >= 0 || submitted == -EINTR || submitted == -EAGAIN ||
                      submitted == -EBUSY);
        harvest();
    } while (!ends());
    refuse_the_rest();
}

void SsdUringReader::hand_over() {
    // What is handed over gets checked, which takes a while: the disk gets new work before and between.
    while (!ended_.empty()) {
        take_reads();
        ::io_uring_submit(&ring_);
        Ended ended = std::move(ended_.front());
        ended_.pop_front();
        if (ended.result) {
            ended.flight->read.done(std::move(ended.flight->buffer));
        } else {
            ended.flight->read.done(std::unexpected(ended.result.error()));
        }
        harvest();
    }
}

void SsdUringReader::harvest() {
    io_uring_cqe* cqe = nullptr;
    while (::io_uring_peek_cqe(&ring_, &cqe) == 0) {
        std::unique_ptr<Flight> flight(static_cast<Flight*>(::io_uring_cqe_get_data(cqe)));
        const int result = cqe->res;
        ::io_uring_cqe_seen(&ring_, cqe);
        if (flight != nullptr) {
            land(std::move(flight), result);
        } else {
            listen();
        }
    }
}

void SsdUringReader::listen() {
    io_uring_sqe& sqe = next_sqe();
    ::io_uring_prep_read(&sqe, wakeups_.get(), &woken_, sizeof woken_, 0);
    ::io_uring_sqe_set_data(&sqe, nullptr);
}

void SsdUringReader::take_reads() {
    std::unique_lock lock(mutex_);
    while (may_begin()) {
        auto flight = std::make_unique<Flight>(std::move(reads_.front()));
        reads_.pop_front();
        ++in_flight_;
        bytes_in_flight_ += flight->read.bytes;
        lock.unlock();
        begin(std::move(flight));
        lock.lock();
    }
}

bool SsdUringReader::may_begin() const {
    return !stopping_ && !reads_.empty() && in_flight_ < options_.depth &&
           (in_flight_ == 0 || bytes_in_flight_ + reads_.front().bytes <= options_.bytes);
}

bool SsdUringReader::nothing_to_do() {
    const std::lock_guard lock(mutex_);
    if (!tasks_.empty() || may_begin() || (stopping_ && in_flight_ == 0)) return false;
    sleeping_ = true;
    return true;
}

bool SsdUringReader::ends() {
    const std::lock_guard lock(mutex_);
    return stopping_ && in_flight_ == 0 && ended_.empty();
}

void SsdUringReader::run_tasks() {
    std::unique_lock lock(mutex_);
    auto tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (Task& task : tasks) task();
}

void SsdUringReader::begin(std::unique_ptr<Flight> flight) {
    flight->buffer = buffers_->take(flight->read.bytes);
    const auto delay = faults_.delay();
    if (delay.count() == 0) return submit(std::move(flight));
    flight->delayed = true;
    flight->delay.tv_sec = delay.count() / 1000;
    flight->delay.tv_nsec = delay.count() % 1000 * 1'000'000;
    io_uring_sqe& sqe = next_sqe();
    ::io_uring_prep_timeout(&sqe, &flight->delay, 0, 0);
    ::io_uring_sqe_set_data(&sqe, flight.release());
}

void SsdUringReader::submit(std::unique_ptr<Flight> flight) {
    if (const int error = faults_.read_error())
        return end(std::move(flight), std::unexpected(Error::io("cannot read", error)));
    const SsdRead& read = flight->read;
    const std::size_t bytes = faults_.transferred(read.bytes - flight->transferred);
    io_uring_sqe& sqe = next_sqe();
    ::io_uring_prep_read(&sqe, read.file->fd(), flight->buffer.get() + flight->transferred,
                         static_cast<unsigned>(bytes), read.offset + flight->transferred);
    ::io_uring_sqe_set_data(&sqe, flight.release());
}

void SsdUringReader::land(std::unique_ptr<Flight> flight, int result) {
    if (std::exchange(flight->delayed, false)) return submit(std::move(flight));
    if (result == -EINTR || result == -EAGAIN) return submit(std::move(flight));
    if (result < 0) {
        const std::string& path = flight->read.file->path();
        return end(std::move(flight), std::unexpected(Error::io("cannot read", -result, path)));
    }
    // What ended within a sector is read again from its start: the disk gives whole ones.
    const std::size_t whole = static_cast<std::size_t>(result) / kSsdSectorBytes * kSsdSectorBytes;
    if (whole == 0) {
        const std::string& path = flight->read.file->path();
        return end(std::move(flight), std::unexpected(Error::corrupt("ends too early", path)));
    }
    flight->transferred += whole;
    if (flight->transferred < flight->read.bytes) return submit(std::move(flight));
    faults_.damage({flight->buffer.get(), flight->read.bytes});
    end(std::move(flight), {});
}

void SsdUringReader::end(std::unique_ptr<Flight> flight, Result<void> result) {
    --in_flight_;
    bytes_in_flight_ -= flight->read.bytes;
    flight->read.file.reset();
    ended_.push_back({.flight = std::move(flight), .result = std::move(result)});
}

io_uring_sqe& SsdUringReader::next_sqe() {
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    while (sqe == nullptr) {
        ::io_uring_submit(&ring_);
        sqe = ::io_uring_get_sqe(&ring_);
    }
    return *sqe;
}

}  // namespace sluice::kv
