#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/process_stats.h"

namespace sluice::metrics {
namespace {

constexpr std::size_t kLabelsMax = 8;

using Values = std::vector<std::string>;
using ValueViews = std::span<const std::string_view>;

/// Lets a series be found without a copy of its labels' values.
struct ValuesLess {
    using is_transparent = void;
    bool operator()(const auto& left, const auto& right) const {
        return std::ranges::lexicographical_compare(left, right, std::less<std::string_view>());
    }
};

template <class Handle>
struct Prometheus;
template <>
struct Prometheus<Counter> {
    using Metric = prometheus::Counter;
};
template <>
struct Prometheus<Gauge> {
    using Metric = prometheus::Gauge;
};
template <>
struct Prometheus<Histogram> {
    using Metric = prometheus::Histogram;
};

/// Cut at a character's start, so that the text stays UTF-8.
std::string_view bounded(std::string_view value) {
    std::size_t length = std::min(value.size(), limits::kMetricLabelBytes);
    const auto inside_character = [&] {
        return length > 0 && length < value.size() &&
               (static_cast<unsigned char>(value[length]) & 0xC0) == 0x80;
    };
    while (inside_character()) --length;
    return value.substr(0, length);
}

prometheus::MetricFamily simple_family(std::string name, std::string help, double value,
                                       prometheus::MetricType type) {
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    metric.counter.value = value;
    return {.name = std::move(name), .help = std::move(help), .type = type, .metric = {metric}};
}

std::vector<prometheus::MetricFamily> process_families() {
    using prometheus::MetricType;
    const Result<ProcessStats> stats = read_process_stats();
    if (!stats) return {};
    const auto gauge = [](const char* name, const char* help, auto value) {
        return simple_family(name, help, static_cast<double>(value), MetricType::Gauge);
    };
    return {
        simple_family("process_cpu_seconds_total", "User and system CPU time", stats->cpu_seconds,
                      MetricType::Counter),
        gauge("process_resident_memory_bytes", "Resident memory", stats->resident_bytes),
        gauge("process_virtual_memory_bytes", "Virtual memory", stats->virtual_bytes),
        gauge("process_open_fds", "Open file descriptors", stats->open_fds),
        gauge("process_max_fds", "Most file descriptors allowed", stats->max_fds),
        gauge("process_threads", "Threads", stats->threads),
        gauge("process_start_time_seconds", "Start, in seconds since the epoch", stats->start_time),
    };
}

}  // namespace

template <class Handle>
struct Family<Handle>::Impl {
    using Metric = typename Prometheus<Handle>::Metric;

    prometheus::Family<Metric>* family;
    std::vector<std::string> names;
    std::vector<double> bounds;  ///< Histograms only.
    std::mutex mutex;
    std::map<Values, Metric*, ValuesLess> series;

    Metric& find_or_add(ValueViews given) {
        SLUICE_ASSERT(given.size() == names.size());
        const std::lock_guard lock(mutex);
        if (const auto it = series.find(given); it != series.end()) return *it->second;
        Values values(given.begin(), given.end());
        if (series.size() >= limits::kMetricSeries) {
            values.assign(names.size(), "other");
            if (const auto it = series.find(values); it != series.end()) return *it->second;
        }
        prometheus::Labels labels;
        for (std::size_t i = 0; i < names.size(); ++i) labels[names[i]] = values[i];
        Metric& metric = add(labels);
        series.emplace(std::move(values), &metric);
        return metric;
    }

    Metric& add(const prometheus::Labels& labels) {
        if constexpr (std::is_same_v<Handle, Histogram>) {
            return family->Add(labels, bounds);
        } else {
            return family->Add(labels);
        }
    }
};

template <class Handle>
Handle Family<Handle>::with(std::initializer_list<std::string_view> values) const {
    return with(std::span(values.begin(), values.size()));
}

template <class Handle>
Handle Family<Handle>::with(std::span<const std::string_view> values) const {
    SLUICE_ASSERT(values.size() <= kLabelsMax);
    std::array<std::string_view, kLabelsMax> cut;
    std::ranges::transform(values, cut.begin(), bounded);
    return Handle(&impl_->find_or_add(ValueViews(cut).first(values.size())));
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

void Counter::add(double amount) { metric_->Increment(amount); }
double Counter::value() const { return metric_->Value(); }
void Gauge::set(double value) { metric_->Set(value); }
void Gauge::add(double amount) { metric_->Increment(amount); }
double Gauge::value() const { return metric_->Value(); }
void Histogram::observe(double value) { metric_->Observe(value); }

std::vector<double> latency_bounds() {
    return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
            1,     2.5,    5,     10,   25,    60,   120, 300,  600};
}

struct Registry::Impl {
    prometheus::Registry registry;
    std::mutex mutex;
    std::set<std::string> names;

    template <class Handle, class Builder>
    Family<Handle> add(Builder builder, const std::string& name, const std::string& help,
                       std::vector<std::string> labels, std::vector<double> bounds) {
        {
            const std::lock_guard lock(mutex);
            SLUICE_ASSERT(names.insert(name).second);
        }
        const bool bare = labels.empty();
        auto impl = std::make_shared<typename Family<Handle>::Impl>();
        impl->family = &builder.Name(name).Help(help).Register(registry);
        impl->names = std::move(labels);
        impl->bounds = std::move(bounds);
        // Without labels there is one series; it shows as 0 before anything happened.
        if (bare) impl->find_or_add({});
        return Family<Handle>(std::move(impl));
    }
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Family<Counter> Registry::counter(const std::string& name, const std::string& help,
                                  std::vector<std::string> labels) {
    return impl_->add<Counter>(prometheus::BuildCounter(), name, help, std::move(labels), {});
}

Family<Gauge> Registry::gauge(const std::string& name, const std::string& help,
                              std::vector<std::string> labels) {
    return impl_->add<Gauge>(prometheus::BuildGauge(), name, help, std::move(labels), {});
}

Family<Histogram> Registry::histogram(const std::string& name, const std::string& help,
                                      std::vector<double> bounds, std::vector<std::string> labels) {
    return impl_->add<Histogram>(prometheus::BuildHistogram(), name, help, std::move(labels),
                                 std::move(bounds));
}

std::string Registry::text() const {
    std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
    for (prometheus::MetricFamily& family : process_families()) {
        families.push_back(std::move(family));
    }
    return prometheus::TextSerializer().Serialize(families);
}

}  // namespace sluice::metrics
