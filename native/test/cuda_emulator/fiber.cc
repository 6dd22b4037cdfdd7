#include "test/cuda_emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

// Keeps what the x86-64 and AArch64 calling conventions let a function count on, and changes stacks. The library's
// ucontext would do as well, but costs two system calls per switch. A kernel's barrier makes hundreds of switches.
#if defined(__x86_64__)
asm(R"(
.text
.globl zf_emulator_switch
.hidden zf_emulator_switch
.type zf_emulator_switch, @function
zf_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size zf_emulator_switch, .-zf_emulator_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl zf_emulator_switch
.hidden zf_emulator_switch
.type zf_emulator_switch, %function
zf_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size zf_emulator_switch, .-zf_emulator_switch
)");
#else
#error "the emulated CUDA device knows x86-64 and AArch64"
#endif
extern "C" void zf_emulator_switch(void** save, void* stack_pointer);

namespace zerofleet::emulator {
namespace {

constexpr std::size_t kStackBytes = 256 << 10;
thread_local Fiber* running = nullptr;

}  // namespace

/// AddressSanitizer must know on which stack the thread is.
struct Fiber::Switch {
  static void begin([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                    [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
  }
  static void end([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
#endif
  }
};

Fiber::Fiber() {
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<std::byte*>(stack);
}

Fiber::~Fiber() { munmap(stack_, kStackBytes); }

void Fiber::start(const std::function<void()>& body) {
  body_ = &body;
  ended_ = false;
  fake_stack_ = nullptr;
  auto* top = reinterpret_cast<void**>(stack_ + kStackBytes);
#if defined(__x86_64__)
  // enter() is to find the stack as a call would leave it: 8 bytes off a multiple of 16.
  *(top - 2) = reinterpret_cast<void*>(&Fiber::enter);
  stack_pointer_ = top - 2 - 6;
#else
  stack_pointer_ = top - 20;
  *(top - 20 + 11) = reinterpret_cast<void*>(&Fiber::enter);  // x30
#endif
}

void Fiber::enter() {
  Fiber& self = *running;
  Switch::end(nullptr, &self.caller_stack_, &self.caller_stack_bytes_);
  (*self.body_)();
  self.ended_ = true;
  running = nullptr;
  Switch::begin(nullptr, self.caller_stack_, self.caller_stack_bytes_);  // null: this stack is done with
  zf_emulator_switch(&self.stack_pointer_, self.caller_pointer_);
  std::abort();
}

bool Fiber::resume() {
  running = this;
  Switch::begin(&caller_fake_stack_, stack_, kStackBytes);
  zf_emulator_switch(&caller_pointer_, stack_pointer_);
  Switch::end(caller_fake_stack_, nullptr, nullptr);
  return ended_;
}

void Fiber::pause() {
  Fiber& self = *running;
  running = nullptr;
  Switch::begin(&self.fake_stack_, self.caller_stack_, self.caller_stack_bytes_);
  zf_emulator_switch(&self.stack_pointer_, self.caller_pointer_);
  Switch::end(self.fake_stack_, &self.caller_stack_, &self.caller_stack_bytes_);
}

}  // namespace zerofleet::emulator
