import { expect, test } from 'vitest';
import { seccompFilter } from './seccomp-filter.ts';

const ALLOWED = 'allowed';
const EPERM = 1;
const ENOSYS = 38;
const X86_64 = 0xc000003e;
const NEWCGROUP = 0x02000000;
const NEWUSER = 0x10000000;
/** The flags with which glibc and musl start a thread. */
const THREAD = 0x003d0f00;

interface SystemCall {
  audit: number;
  number: number;
  /** The first argument. */
  flags?: bigint | number;
}

/** Returns what the kernel would: executes the filter's classic BPF. */
function decide({ audit, number, flags = 0 }: SystemCall): number | 'allowed' {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(audit, 4);
  data.writeBigUInt64LE(BigInt(flags), 16);
  const program = seccompFilter();
  let register = 0;
  for (let at = 0; at < program.length / 8; at++) {
    const code = program.readUInt16LE(at * 8);
    const value = program.readUInt32LE(at * 8 + 4);
    const jump = (is: boolean) => {
      at += program.readUInt8(at * 8 + (is ? 2 : 3));
    };
    if (code === 0x20) register = data.readUInt32LE(value);
    else if (code === 0x54) register = (register & value) >>> 0;
    else if (code === 0x15) jump(register === value);
    else if (code === 0x25) jump(register > value);
    else if (code === 0x35) jump(register >= value);
    else if (code === 0x45) jump((register & value) !== 0);
    else if (code === 0x06) return value === 0x7fff0000 ? ALLOWED : value & 0xffff;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error('the filter ends without a decision');
}

const architectures = [
  { name: 'x86-64', audit: X86_64, add_key: 248, clone: 56, unshare: 272 },
  { name: 'i386', audit: 0x40000003, add_key: 286, clone: 120, unshare: 310 },
  { name: 'AArch64', audit: 0xc00000b7, add_key: 217, clone: 220, unshare: 97 },
  { name: 'ARM', audit: 0x40000028, add_key: 309, clone: 120, unshare: 337 },
];

test.each(architectures)(
  'rejects kernel keys on $name, but not the neighboring calls',
  ({ audit, add_key }) => {
    const [before, ...keys] = [-1, 0, 1, 2].map((n) => decide({ audit, number: add_key + n }));
    expect(keys).toEqual([EPERM, EPERM, EPERM]);
    expect([before, decide({ audit, number: add_key + 3 })]).toEqual([ALLOWED, ALLOWED]);
  },
);

test.each(architectures)(
  'rejects a new cgroup namespace on $name, but no other namespace',
  ({ audit, clone, unshare }) => {
    for (const number of [clone, unshare]) {
      expect(decide({ audit, number, flags: NEWCGROUP })).toBe(EPERM);
      expect(decide({ audit, number, flags: NEWUSER | NEWCGROUP })).toBe(EPERM);
      // The kernel reads 64 or 32 bits of the flags. In both cases the lower half decides.
      expect(decide({ audit, number, flags: 0xffffffff00000000n | BigInt(NEWCGROUP) })).toBe(EPERM);
      expect(decide({ audit, number, flags: NEWUSER | 0x20000 })).toBe(ALLOWED);
      expect(decide({ audit, number, flags: THREAD })).toBe(ALLOWED);
    }
    expect(decide({ audit, number: 435 })).toBe(ENOSYS);
  },
);

test('ignores the x32 bit of a system call number', () => {
  const x32 = 0x40000000;
  expect(decide({ audit: X86_64, number: 272 + x32, flags: NEWCGROUP })).toBe(EPERM);
  expect(decide({ audit: X86_64, number: 250 + x32 })).toBe(EPERM);
  expect(decide({ audit: X86_64, number: 435 + x32 })).toBe(ENOSYS);
});

test('allows calls of other architectures, and other calls with the same argument', () => {
  expect(decide({ audit: 0x8000_0016, number: 248 })).toBe(ALLOWED);
  expect(decide({ audit: X86_64, number: 0, flags: NEWCGROUP })).toBe(ALLOWED);
});
