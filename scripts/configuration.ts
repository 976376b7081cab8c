/** Writes the reference of all configuration keys from their one table. */
import { configKeyNames, configKeys, envName } from '../src/contract/config.ts';

const intro = `# Configuration

Made from \`src/contract/config.ts\` by \`npm run generate\`; do not edit.

Flag over environment over live over file over default. \`svc config show --origin\` says which one counts.

- **File**: TOML; \`--config\`, else \`SVC_CONFIG\`, else \`$XDG_CONFIG_HOME/svc/config.toml\`, else \`/etc/svc/config.toml\`. An
  unknown key is an error that names the nearest known one. Relative paths are seen from the file; \`~/\` is the home.
- **Environment**: the names below. Lists are separated by commas, an empty value is unset, and \`…_FILE\` names a file that
  holds the value.
- **Flags**: \`--listen\`, \`--data-dir\`, and \`--set key=value\` for every key that is no secret.
- **Live**: keys marked so, by \`svc config set key=value\` (root). Kept in the database, applied without a restart, audited.
  What a flag or the environment sets cannot be changed live.
`;

export function configurationPage(): string {
  const rows = configKeyNames.map((key) => {
    const { kind, default: value, derived, live, secret, description } = configKeys[key];
    const empty = value === null || (Array.isArray(value) && value.length === 0);
    const shown = derived ?? (empty ? 'unset' : `\`${String(value)}\``);
    const marks = [live && 'live', secret && 'secret'].filter(Boolean).join(', ');
    return `| \`${key}\` | ${kind} | ${shown} | ${marks} | ${description} | \`${envName(key)}\` |`;
  });
  const head = '| key | kind | default | | meaning | environment |\n|---|---|---|---|---|---|';
  return `${intro}\n${head}\n${rows.join('\n')}\n`;
}
