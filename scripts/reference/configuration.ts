/** Writes the reference of all configuration keys from their table in `src/core/config.ts`. */
import { type ConfigKeySpec, configKeyNames, configKeys, envName } from '../../src/core/config.ts';

const intro = `# Configuration

This page lists all settings of svc. It is generated from \`src/core/config.ts\` by \`npm run generate\`; do not edit it.

A setting can come from several sources. The first of these that has a value is used:

| Origin | How to set it |
|---|---|
| flag | \`--listen\`, \`--data-dir\`, or \`--set key=value\` for every key that is not a secret, and for \`database.url\` |
| environment | the variable in the table below |
| live | \`svc config set key=value\`, as root, for keys marked *live* |
| file | a TOML file: \`--config\`, else \`SVC_CONFIG\`, else \`$XDG_CONFIG_HOME/svc/config.toml\`, else \`/etc/svc/config.toml\` |
| default | the value in the table below |

\`svc config show --origin\` shows each value and its origin. If they are not set, \`$XDG_CONFIG_HOME\` is \`~/.config\` and \`$XDG_DATA_HOME\` is
\`~/.local/share\`.

- **Flags.** Relative paths in flags and variables start at the working directory.
- **Environment.** Separate the entries of a list by commas, or write a JSON array. An empty value counts as unset. \`…_FILE\` names a file that contains the value.
- **Live.** Live settings are stored in the database, take effect without a restart, and are audited. You cannot change a value live if a flag or
  a variable sets it. Paths must be absolute.
- **File.** Relative paths start at the folder of the file, and \`~/\` is the home directory. An unknown key is an error that names the most similar
  known key.

## Settings
`;

const outro = `## Variables that agents do not get

Agents never get these variables of the service, even if \`agents.env_allow\` lists them:

- \`SVC_*\`
- \`npm_*\`, \`INIT_CWD\` and \`NODE\`, if npm started the service
- \`XDG_*_HOME\` and \`XDG_RUNTIME_DIR\`, with \`agents.run_as\` or \`agents.sandbox\`: they name folders of the service's user
`;

export function configurationPage(): string {
  const rows = configKeyNames.map((key) => {
    const { default: value, derived, live, secret, description } = configKeys[key];
    const empty = value === null || (Array.isArray(value) && value.length === 0);
    const shown = derived ?? (empty ? 'unset' : `\`${String(value)}\``);
    const marks = [live && 'live', secret && 'secret'].filter(Boolean).join(', ');
    return `| \`${key}\` | ${describeType(configKeys[key])} | ${shown} | ${marks} | ${description} | \`${envName(key)}\` |`;
  });
  const head = '| Key | Type | Default | Notes | Meaning | Variable |\n|---|---|---|---|---|---|';
  return `${intro}\n${head}\n${rows.join('\n')}\n\n${outro}`;
}

/** The type of a value, with the allowed values or bounds. */
function describeType({ kind, choices, range }: ConfigKeySpec): string {
  if (choices !== null) return choices.map((choice) => `\`${choice}\``).join(', ');
  if (range === null) return kind;
  const [min, max] = range;
  return max === Number.MAX_SAFE_INTEGER ? `integer, at least ${min}` : `integer, ${min} to ${max}`;
}
