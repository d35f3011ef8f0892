#pragma once

// Counters, gauges and histograms, and the text Prometheus reads.
//
// Label values can come from outside (a model's name, a tenant), so the number of series of a metric
// is bounded: beyond limits::kMetricSeries every new combination counts under "other", and totals
// stay right. A handle (Counter, Gauge, Histogram) is a pointer into its registry: cheap to copy,
// to be kept by hot paths, and valid as long as the registry lives.
//
// Threads: any.

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace sluice::metrics {

/// Only grows.
class Counter {
public:
    void add(double amount = 1);
    [[nodiscard]] double value() const;

private:
    template <class Handle>
    friend class Family;
    explicit Counter(prometheus::Counter* metric) : metric_(metric) {}
    prometheus::Counter* metric_;
};

class Gauge {
public:
    void set(double value);
    void add(double amount);
    [[nodiscard]] double value() const;

private:
    template <class Handle>
    friend class Family;
    explicit Gauge(prometheus::Gauge* metric) : metric_(metric) {}
    prometheus::Gauge* metric_;
};

class Histogram {
public:
    void observe(double value);

private:
    template <class Handle>
    friend class Family;
    explicit Histogram(prometheus::Histogram* metric) : metric_(metric) {}
    prometheus::Histogram* metric_;
};

/// All series of one name. Copies share it.
template <class Handle>
class Family {
public:
    /// The series with these label values, in the order of the names; made on first use.
    [[nodiscard]] Handle with(std::initializer_list<std::string_view> values) const;
    [[nodiscard]] Handle with(std::span<const std::string_view> values) const;

    struct Impl;  ///< Private to metrics.cc.
    explicit Family(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

private:
    std::shared_ptr<Impl> impl_;
};

extern template class Family<Counter>;
extern template class Family<Gauge>;
extern template class Family<Histogram>;

/// Bounds in seconds for waits a person feels, 1 ms to 10 min; used for TTFT, TBT and steps.
[[nodiscard]] std::vector<double> latency_bounds();

class Registry {
public:
    Registry();
    ~Registry();
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    /// Each name once (asserted), with base units in it: "sluice_ttft_seconds".
    [[nodiscard]] Family<Counter> counter(const std::string& name, const std::string& help,
                                          std::vector<std::string> labels = {});
    [[nodiscard]] Family<Gauge> gauge(const std::string& name, const std::string& help,
                                      std::vector<std::string> labels = {});
    [[nodiscard]] Family<Histogram> histogram(const std::string& name, const std::string& help,
                                              std::vector<double> bounds,
                                              std::vector<std::string> labels = {});

    /// Text format 0.0.4 of everything, process_* read at this moment.
    [[nodiscard]] std::string text() const;
    static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::metrics
