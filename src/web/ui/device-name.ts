/** A readable name for a user agent; unknown ones stay as they are. Only for telling devices apart. */
const browsers: readonly [RegExp, string][] = [
  [/Edg(?:e|A|iOS)?\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/HeadlessChrome\/|Chrome\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const systems: readonly [RegExp, string][] = [
  [/iPhone/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X|Macintosh/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

export function deviceName(user_agent: string | null): string {
  if (!user_agent) return 'Unknown';
  const browser = browsers.find(([pattern]) => pattern.test(user_agent))?.[1];
  if (!browser) return user_agent;
  const system = systems.find(([pattern]) => pattern.test(user_agent))?.[1];
  return system ? `${browser} on ${system}` : browser;
}
