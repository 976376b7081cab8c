/** The appearance settings of this browser. */
import { setAppearance, useAppearance } from '../../shell/appearance.ts';
import { MOD } from '../../ui/keys.ts';
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
            <Radio
              key={value}
              name="theme"
              label={label}
              checked={theme === value}
              onChange={() => setAppearance({ theme: value })}
            />
          ))}
        </fieldset>
      </Section>
      <SendKey />
      <ShortcutSwitch />
    </>
  );
}

const send_keys = [
  { value: true, label: 'Enter' },
  { value: false, label: `${MOD}+Enter` },
];

function SendKey() {
  const { enter_sends } = useAppearance();
  return (
    <Section
      title="Send prompts with"
      about="Shift+Enter always starts a new line. So does Enter on touch screens."
    >
      <fieldset className="flex flex-wrap gap-2">
        <legend className="sr-only">Send prompts with</legend>
        {send_keys.map(({ value, label }) => (
          <Radio
            key={label}
            name="send-key"
            label={label}
            checked={enter_sends === value}
            onChange={() => setAppearance({ enter_sends: value })}
          />
        ))}
      </fieldset>
    </Section>
  );
}

function Radio({
  name,
  label,
  checked,
  onChange,
}: {
  name: string;
  label: string;
  checked: boolean;
  onChange: () => void;
}) {
  return (
    <label className="tap flex items-center gap-2 rounded-md border border-line-strong/60 px-3 has-checked:border-accent has-checked:bg-surface has-focus-visible:outline-2 has-focus-visible:outline-accent">
      <input type="radio" name={name} checked={checked} onChange={onChange} className="accent-accent" />
      {label}
    </label>
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
