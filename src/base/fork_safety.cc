#include "base/fork_safety.h"

#include <pthread.h>
#include <unistd.h>

#include "base/error.h"

namespace topoccl {
namespace {

// Changes only where the process has one thread: in a child, before its fork returns.
uint32_t generation = 0;

// In order of level. Fixed once the library is loaded.
constinit ForkHook* first = nullptr;

}  // namespace

uint32_t processGeneration() noexcept {
  return generation;
}

void refuseAfterFork(const std::string& what, pid_t maker, const std::string& advice) {
  throw Error(Code::InvalidUsage, concat(what, " of process ", maker, ", which forked this one, ", ::getpid(),
                                         ": it can only be used there; ", advice));
}

ForkHook::ForkHook(Level level, Function prepare, Function release, Function renew) noexcept
    : level_(level), prepare_(prepare), release_(release), renew_(renew) {
  enlist(*this);
}

void ForkHook::enlist(ForkHook& hook) noexcept {
  if (first == nullptr) ::pthread_atfork(prepareAll, releaseAll, renewAll);
  ForkHook** place = &first;
  while (*place != nullptr && (*place)->level_ <= hook.level_) place = &(*place)->next_;
  hook.next_ = *place;
  *place = &hook;
}

void ForkHook::prepareAll() {
  makeAll();
  for (const ForkHook* hook = first; hook != nullptr; hook = hook->next_)
    if (hook->level_ != Level::First) hook->prepare_();
}

void ForkHook::makeAll() {
  for (const ForkHook* hook = first; hook != nullptr && hook->level_ == Level::First; hook = hook->next_)
    try {
      hook->prepare_();
    } catch (const std::exception&) {  // told when it is needed
    }
}

void ForkHook::releaseAll() {
  for (const ForkHook* hook = first; hook != nullptr; hook = hook->next_)
    if (hook->release_ != nullptr) hook->release_();
}

void ForkHook::renewAll() {
  ++generation;
  for (const ForkHook* hook = first; hook != nullptr; hook = hook->next_)
    if (hook->renew_ != nullptr) hook->renew_();
  releaseAll();
}

}  // namespace topoccl
