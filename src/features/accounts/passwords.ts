/**
 * Passwords: the policy, and argon2id hashes as PHC strings. Only a few hashes run at once, because each takes 19 MiB and a
 * thread; other callers wait. A hash reveals nothing except whether a password matches it.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { limits as sharedLimits } from '../../base/limits.ts';
import { invalid } from '../../core/problem.ts';
import { limits } from './limits.ts';

export interface PasswordRules {
  min_length: number;
  require_special_chars: boolean;
}

interface Cost {
  memory_kib: number;
  passes: number;
  parallelism: number;
}

interface Parsed extends Cost {
  salt: Buffer;
  tag: Buffer;
}

const cost: Cost = {
  memory_kib: limits.password_hash_memory_kib,
  passes: limits.password_hash_passes,
  parallelism: 1,
};
const TAG_BYTES = 32;
const SALT_BYTES = 16;
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
const SPECIAL = /[^\p{L}\p{N}]/u;
const argon2id = promisify(argon2);

export class Passwords {
  readonly #rules: () => PasswordRules;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** `rules` is called for every check, so that changed settings take effect immediately. */
  constructor(rules: () => PasswordRules) {
    this.#rules = rules;
  }

  /** Throws a 400 for the first rule that `password` violates. Characters are code points after NFKC. */
  async check(password: string): Promise<void> {
    const { min_length, require_special_chars } = this.#rules();
    const characters = [...normal(password)];
    if (characters.length < min_length)
      throw invalid(`password must be at least ${min_length} characters`, 'password_too_short');
    if (characters.length > sharedLimits.password_chars_max)
      throw invalid(
        `password must be at most ${sharedLimits.password_chars_max} characters`,
        'password_too_long',
      );
    if (require_special_chars && !SPECIAL.test(characters.join('')))
      throw invalid('password must contain a special character', 'password_needs_special');
    if (await isCommon(characters.join(''))) throw invalid('password is too common', 'password_too_common');
  }

  /** Hashes a password with a new salt; resolves to a PHC string. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const tag = await this.#derive(password, { ...cost, salt, tag: Buffer.alloc(TAG_BYTES) });
    return `$argon2id$v=19$m=${cost.memory_kib},t=${cost.passes},p=${cost.parallelism}$${b64(salt)}$${b64(tag)}`;
  }

  /** Whether `password` matches. Without a hash (unknown user), it does the same amount of work and returns false. */
  async verify(password: string, phc: string | undefined): Promise<boolean> {
    const stored = phc === undefined ? undefined : parse(phc);
    const against = stored ?? { ...cost, salt: randomBytes(SALT_BYTES), tag: randomBytes(TAG_BYTES) };
    const tag = await this.#derive(password, against);
    return timingSafeEqual(tag, against.tag) && stored !== undefined;
  }

  /** Whether the hash was created with other parameters than the current ones. */
  outdated(phc: string): boolean {
    const { memory_kib, passes, parallelism, tag } = parse(phc);
    return (
      memory_kib !== cost.memory_kib ||
      passes !== cost.passes ||
      parallelism !== cost.parallelism ||
      tag.length !== TAG_BYTES
    );
  }

  async #derive(password: string, how: Parsed): Promise<Buffer> {
    if (this.#running >= limits.password_hashes_at_once)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await argon2id('argon2id', {
        message: normal(password),
        nonce: how.salt,
        parallelism: how.parallelism,
        tagLength: how.tag.length,
        memory: how.memory_kib,
        passes: how.passes,
      });
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}

/** Whether the password is on the list of common passwords, which is large and loaded on first use. */
async function isCommon(password: string): Promise<boolean> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return dictionary['passwords-common'].includes(password.toLowerCase());
}

function normal(password: string): string {
  return password.normalize('NFKC');
}

function b64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replaceAll('=', '');
}

function parse(phc: string): Parsed {
  const match = PHC.exec(phc);
  if (!match) throw new Error('stored password hash is not an argon2id PHC string');
  const [, memory, passes, parallelism, salt, tag] = match as unknown as string[];
  return {
    memory_kib: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt!, 'base64'),
    tag: Buffer.from(tag!, 'base64'),
  };
}
