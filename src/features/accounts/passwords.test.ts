import { describe, expect, it } from 'vitest';
import { limits } from '../../base/limits.ts';
import { Passwords } from './passwords.ts';

const rules = { min_length: 12, require_special_chars: false };
const passwords = new Passwords(() => rules);

describe('password policy', () => {
  it('uses the current settings, and the messages of the contract', async () => {
    const live = { ...rules };
    const checked = new Passwords(() => live);
    await expect(checked.check('elevenchars')).rejects.toThrow('password must be at least 12 characters');
    await expect(checked.check('twelve chars')).resolves.toBeUndefined();
    live.min_length = 20;
    live.require_special_chars = true;
    await expect(checked.check('twelve chars')).rejects.toThrow('password must be at least 20 characters');
    await expect(checked.check('twentycharactersäöü1234')).rejects.toThrow(
      'password must contain a special character',
    );
    await expect(checked.check('twenty-characters-äöü-1')).resolves.toBeUndefined();
  });

  it('rejects common passwords in any spelling', async () => {
    const short = new Passwords(() => ({ ...rules, min_length: 8 }));
    for (const common of ['password', 'PassWord', 'qwertyuiop', '1qaz2wsx3edc', 'ｐａｓｓｗｏｒｄ'])
      await expect(short.check(common), common).rejects.toThrow('password is too common');
    await expect(short.check('password of mine')).resolves.toBeUndefined();
  });

  it('counts and limits characters, not code units', async () => {
    await expect(passwords.check('🐎'.repeat(11))).rejects.toThrow('at least 12');
    await expect(passwords.check('🐎'.repeat(12))).resolves.toBeUndefined();
    await expect(passwords.check('x'.repeat(limits.password_chars_max))).resolves.toBeUndefined();
    await expect(passwords.check('x'.repeat(limits.password_chars_max + 1))).rejects.toThrow('at most 1024');
  });
});

describe('password hashes', () => {
  it('are argon2id with 19 MiB, two passes, one lane, and a unique salt', async () => {
    const [one, two] = await Promise.all([passwords.hash('the same one'), passwords.hash('the same one')]);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(one).not.toBe(two);
    expect(passwords.outdated(one)).toBe(false);
  });

  it('match their password in any Unicode composition, and no other', async () => {
    const phc = await passwords.hash('café au lait');
    expect(await passwords.verify('cafe\u0301 au lait', phc)).toBe(true);
    expect(await passwords.verify('cafe au lait', phc)).toBe(false);
    expect(await passwords.verify('', phc)).toBe(false);
  });

  it('can be verified if they have other parameters, but are outdated', async () => {
    // A test vector of the reference implementation: `argon2 somesalt -id -t 2 -m 16 -p 1`, password `password`.
    const reference =
      '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    expect(await passwords.verify('password', reference)).toBe(true);
    expect(await passwords.verify('Password', reference)).toBe(false);
    expect(passwords.outdated(reference)).toBe(true);
  });

  it('match nothing if the user is unknown', async () => {
    expect(await passwords.verify('anything', undefined)).toBe(false);
    expect(await passwords.verify('', undefined)).toBe(false);
  });
});
