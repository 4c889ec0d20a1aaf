#include "common/json_report.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/new_file.h"
#include "common/number_text.h"
#include "common/statistics.h"
#include "common/text_report.h"

namespace topoccl::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 2;

Json flag(bool value) {
  return value ? "true" : "false";
}

Json number(double value) {
  return std::isnan(value) ? Json("nan") : Json(value);
}

Json iterations(const Measurement& m, int skip) {
  const std::vector<double> slowest = slowestIterations(m, skip);
  const Statistics s = summarize(slowest);
  Json json = {{"skipped_iterations", skip},
               {"min_us", s.minimum},
               {"max_us", s.maximum},
               {"avg_us", s.average},
               {"p50_us", s.p50},
               {"p95_us", s.p95},
               {"p99_us", s.p99},
               {"stdev_us", s.deviation},
               {"cv_pct", s.variationPercent},
               {"times_us", slowest}};
  if (m.iterations.size() > 1) json["per_process_max_times_us"] = m.iterations;
  return json;
}

Json rankLine(const DeviceLine& d) {
  return {{"rank", d.rank},     {"group", d.group},      {"pid", d.pid},         {"hostname", d.host},
          {"device", d.device}, {"device_hex", d.busId}, {"device_info", d.name}};
}

}  // namespace

struct JsonReport::Document {
  std::FILE* file;
  const Options& options;
  Json root;
  Json row;
};

JsonReport::JsonReport(const Options& options, int argumentCount, char** arguments, int libraryVersion) {
  if (options.outputFile.empty()) return;
  std::FILE* file = createNewFile(options.outputFile, "JSON");
  document_ = std::make_unique<Document>(Document{file, options, Json::object(), Json::object()});
  Json& root = document_->root;
  root["version"] = kFormatVersion;
  root["start_time"] = timeOfDay();
  root["args"] = std::vector<std::string>(arguments, arguments + argumentCount);
  root["env"] = Json::array();
  for (char** entry = environ; *entry != nullptr; entry++) root["env"].push_back(*entry);
  root["nccl_version"] = libraryVersion;
}

JsonReport::~JsonReport() {
  try {
    finish({"the run did not end"});
  } catch (...) {
  }
}

void JsonReport::config(const Options& o, const std::vector<DeviceLine>& devices) {
  if (!document_) return;
  Json config = {{"nthreads", o.threads},
                 {"ngpus", o.devicesPerThread},
                 {"minimum_bytes", o.minBytes},
                 {"maximum_bytes", o.maxBytes}};
  if (o.stepFactor > 1) {
    config["step_factor"] = o.stepFactor;
  } else {
    config["step_bytes"] = o.stepBytes;
  }
  config.update({{"warmup_iters", o.warmups},
                 {"iterations", o.iterations},
                 {"aggregated_iterations", o.aggregated},
                 {"validation", o.checks},
                 {"graph", 0},
                 {"blocking_collectives", flag(o.blocking != Blocking::Never)},
                 {"per_iter_timing", flag(o.perIteration)},
                 {"per_iter_skip", o.perIterationSkip},
                 {"parallel_init", flag(o.parallelInit)},
                 {"devices", Json::array()}});
  for (const DeviceLine& device : devices) config["devices"].push_back(rankLine(device));
  document_->root["config"] = config;
  document_->root["results"] = Json::array();
}

void JsonReport::beginRow(const Row& row) {
  if (!document_) return;
  char root[16];
  std::snprintf(root, sizeof root, "%6i", row.root);
  document_->row = {
      {"size", row.bytes}, {"count", row.count}, {"type", row.type}, {"redop", row.op}, {"root", root}};
}

void JsonReport::measurement(const Measurement& m, bool isInPlace) {
  if (!document_) return;
  const std::string key = isInPlace ? "in_place" : "out_of_place";
  document_->row[key] = {{document_->options.reportCpuTime ? "cpu_time" : "time", number(m.microseconds)},
                         {"alg_bw", number(m.algorithmBandwidth)},
                         {"bus_bw", number(m.busBandwidth)},
                         {"nwrong", m.wrong ? Json(static_cast<double>(*m.wrong)) : Json(nullptr)}};
  if (document_->options.perIteration && m.isRun()) {
    document_->row[key + "_per_iter"] = iterations(m, document_->options.perIterationSkip);
  }
}

void JsonReport::endRow(const Row& row, const std::string& program) {
  if (!document_) return;
  if (row.plan) {
    document_->row["plan"] = {{"algorithm", row.plan->algorithm}, {"protocol", row.plan->protocol},
                              {"transport", row.plan->transport}, {"channels", row.plan->channels},
                              {"slots", row.plan->slots},         {"slot_bytes", row.plan->slotBytes}};
  }
  document_->row["actual_iterations"] = document_->options.iterations;
  document_->row["experiment_name"] = program;
  document_->root["results"].push_back(document_->row);
}

void JsonReport::summary(const Summary& summary) {
  if (!document_) return;
  document_->root["out_of_bounds"] = {{"count", summary.failedChecks},
                                      {"okay", flag(summary.failedChecks == 0)}};
  document_->root["average_bus_bandwidth"] = {
      {"bandwidth", number(summary.averageBusBandwidth)},
      {"okay", summary.wantedBandwidth < 0 ? Json("unchecked") : flag(summary.isFastEnough())}};
}

void JsonReport::finish(const std::vector<std::string>& errors) {
  if (!document_) return;
  document_->root["errors"] = errors;
  document_->root["end_time"] = timeOfDay();
  // Names and variables need not be UTF-8.
  const std::string text = document_->root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), document_->file) == text.size();
  const bool closed = std::fclose(document_->file) == 0;
  const int error = errno;
  document_.reset();
  if (!written || !closed)
    throw Failure(ExitCode::InternalError, std::string("writing the JSON report: ") + std::strerror(error));
}

}  // namespace topoccl::bench
