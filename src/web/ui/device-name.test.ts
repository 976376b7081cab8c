import { describe, expect, it } from 'vitest';
import { deviceName } from './device-name.ts';

describe('the name of a device', () => {
  it('consists of the most specific browser name and the system', () => {
    const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
    expect(deviceName(`Mozilla/5.0 (X11; Linux x86_64) ${webkit} Chrome/150.0 Safari/537.36`)).toBe(
      'Chrome on Linux',
    );
    expect(deviceName(`Mozilla/5.0 (Windows NT 10.0) ${webkit} Chrome/150.0 Safari/537.36 Edg/150.0`)).toBe(
      'Edge on Windows',
    );
    expect(
      deviceName(`Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) ${webkit} Version/20 Safari/604.1`),
    ).toBe('Safari on iPhone');
  });
  it('is the user agent of any other program', () => {
    expect([deviceName('svc-cli/0.1.0'), deviceName(null)]).toEqual(['svc-cli/0.1.0', 'Unknown']);
  });
});
