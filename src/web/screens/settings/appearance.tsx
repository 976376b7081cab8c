/** The appearance settings of this browser. */
import { setAppearance, useAppearance } from '../../shell/appearance.ts';
import { Section } from './section.tsx';

const themes = [
  { value: 'system', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const;

export function AppearanceSettings() {
  const { theme } = useAppearance();
  return (
    <>
      <Section title="Theme" about="Stored in this browser.">
        <fieldset className="flex flex-wrap gap-2">
          <legend className="sr-only">Theme</legend>
          {themes.map(({ value, label }) => (
            <label
              key={value}
              className="tap flex items-center gap-2 rounded-md border border-line-strong/60 px-3 has-checked:border-accent has-checked:bg-surface has-focus-visible:outline-2 has-focus-visible:outline-accent"
            >
              <input
                type="radio"
                name="theme"
                value={value}
                checked={theme === value}
                onChange={() => setAppearance({ theme: value })}
                className="accent-accent"
              />
              {label}
            </label>
          ))}
        </fieldset>
      </Section>
      <ShortcutSwitch />
    </>
  );
}

export function ShortcutSwitch() {
  const { shortcuts } = useAppearance();
  return (
    <Section title="Single-key shortcuts">
      <label className="tap flex items-center gap-2">
        <input
          type="checkbox"
          checked={shortcuts}
          onChange={(event) => setAppearance({ shortcuts: event.target.checked })}
          className="size-4 accent-accent"
        />
        Enable single-key shortcuts
      </label>
    </Section>
  );
}
