/**
 * The sandbox's system call filter, for resources that namespaces do not separate:
 *
 * - Kernel keys. A service that was started from a login has that login's session keyring, and its children would
 *   inherit it.
 * - Cgroups. In a new cgroup namespace, a program could mount the service's cgroups and, as root, write to them.
 *
 * Both fail with EPERM, as in other sandboxes. `clone3` fails with ENOSYS, because a filter cannot read its flags;
 * programs then use `clone`. All other calls are allowed, and so are all calls of architectures that are not listed.
 */

interface Architecture {
  /** AUDIT_ARCH_* */
  audit: number;
  /** The number of add_key; request_key and keyctl follow it. */
  add_key: number;
  clone: number;
  unshare: number;
}

/** For 64-bit and 32-bit programs. */
const ARCHITECTURES: Architecture[] = [
  // x86-64, i386, AArch64, ARM
  { audit: 0xc000003e, add_key: 248, clone: 56, unshare: 272 },
  { audit: 0x40000003, add_key: 286, clone: 120, unshare: 310 },
  { audit: 0xc00000b7, add_key: 217, clone: 220, unshare: 97 },
  { audit: 0x40000028, add_key: 309, clone: 120, unshare: 337 },
];
/** This number is the same on all architectures. */
const CLONE3 = 435;
const CLONE_NEWCGROUP = 0x02000000;

/** Classic BPF opcodes, named as in linux/bpf_common.h and linux/seccomp.h. */
const LOAD = 0x20;
const AND = 0x54;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER = 0x25;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const EPERM = 0x00050001;
const ENOSYS = 0x00050026;
/** Offsets in `struct seccomp_data`. The first argument is 64 bits wide, and flags are in its lower half. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const FIRST_ARGUMENT_AT = 16;
/** Programs of the x32 ABI on x86-64 set this bit in system call numbers. */
const WITHOUT_X32 = 0xbfffffff;

type Instruction = [code: number, if_true: number, if_false: number, value: number];

/** The instructions for one architecture. A jump skips the given number of instructions. */
function systemCallsOf({ audit, add_key, clone, unshare }: Architecture): Instruction[] {
  return [
    [JUMP_EQUAL, 0, 12, audit],
    [LOAD, 0, 0, NUMBER_AT],
    [AND, 0, 0, WITHOUT_X32],
    [JUMP_EQUAL, 8, 0, CLONE3],
    [JUMP_EQUAL, 3, 0, clone],
    [JUMP_EQUAL, 2, 0, unshare],
    [JUMP_AT_LEAST, 0, 4, add_key],
    [JUMP_GREATER, 3, 2, add_key + 2],
    [LOAD, 0, 0, FIRST_ARGUMENT_AT],
    [JUMP_ANY_BIT, 0, 1, CLONE_NEWCGROUP],
    [RETURN, 0, 0, EPERM],
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, ENOSYS],
  ];
}

/** The filter for `bwrap --seccomp`: one `struct sock_filter` per instruction. */
export function seccompFilter(): Buffer {
  const program: Instruction[] = [
    [LOAD, 0, 0, ARCHITECTURE_AT],
    ...ARCHITECTURES.flatMap(systemCallsOf),
    [RETURN, 0, 0, ALLOW],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [n, [code, if_true, if_false, value]] of program.entries()) {
    // In the machine's byte order, which is little-endian wherever Node runs.
    bytes.writeUInt16LE(code, n * 8);
    bytes.writeUInt8(if_true, n * 8 + 2);
    bytes.writeUInt8(if_false, n * 8 + 3);
    bytes.writeUInt32LE(value, n * 8 + 4);
  }
  return bytes;
}
