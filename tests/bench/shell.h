// Runs a bench as people do, and reads what it prints.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace topoccl::bench {

struct Outcome {
  int code;
  std::string text;    // stdout
  std::string errors;  // stderr
};

inline std::string readAll(std::FILE* file) {
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  return text;
}

inline Outcome shell(const std::string& command) {
  std::FILE* errors = std::tmpfile();
  std::FILE* pipe = popen((command + " 2>&" + std::to_string(fileno(errors))).c_str(), "r");
  Outcome outcome{-1, readAll(pipe), ""};
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  std::rewind(errors);
  outcome.errors = readAll(errors);
  std::fclose(errors);
  return outcome;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct TableRow {
  long bytes;
  std::string wrong[2];
};

inline std::vector<TableRow> table(const std::string& text) {
  std::vector<TableRow> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    TableRow row{};
    std::string skip;
    if (!(fields >> row.bytes)) continue;
    for (int i = 0; i < 7; i++) fields >> skip;
    fields >> row.wrong[0] >> skip >> skip >> skip >> row.wrong[1];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace topoccl::bench
