/**
 * The catalog of presets: what to run, how to detect each agent on a node, and what users should know before they trust it.
 * To add an agent, add an entry. `permission` describes how to make the agent ask before it acts, and what that guarantee
 * covers.
 */
import type { Preset } from './preset.ts';

const opencodePermissions = { edit: 'ask', bash: 'ask', webfetch: 'ask', websearch: 'ask' };

export const presets: readonly Preset[] = [
  {
    id: 'demo',
    name: 'Demo agent',
    description: "svc's own scripted agent: no model, no account, no network",
    protocol: 'acp',
    program: {
      argv: ['svc', 'demo-agent'],
      version_argv: ['svc', '--version'],
      install_hint: null,
      sign_in: null,
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [{ session_mode: 'ask' }],
      acting_modes: ['auto'],
      note: 'Asks before it writes a file.',
    },
    state_dirs: ['.local/state/svc-demo'],
    notes: ['It shows what it is going to write, and asks first.'],
  },
  {
    id: 'claude',
    name: 'Claude Code',
    description: "Anthropic's coding agent, through its ACP adapter",
    protocol: 'acp',
    program: {
      argv: ['claude-agent-acp'],
      version_argv: ['claude-agent-acp', '--version'],
      install_hint: 'npm install -g @agentclientprotocol/claude-agent-acp',
      sign_in: {
        env: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'],
        files: ['.claude/.credentials.json'],
        otherwise: 'unknown',
        hint: 'claude-agent-acp --cli auth login, or ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in env',
      },
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [{ session_mode: 'default' }],
      acting_modes: ['acceptEdits', 'auto', 'bypassPermissions', 'dontAsk'],
      note: 'In its mode “default”, asks before edits, commands and fetches. Read-only commands, and everything that its own settings allow, run without asking.',
    },
    state_dirs: ['.claude'],
    notes: [
      'As root it may refuse to open a session: set IS_SANDBOX=1 in env, which declares this machine a sandbox, or run agents as another user (agents.run_as).',
      'An ANTHROPIC_API_KEY overrides a signed-in subscription, and its use is billed.',
      'On macOS the login is in the keychain, where svc cannot see it.',
    ],
  },
  {
    id: 'codex',
    name: 'Codex',
    description: "OpenAI's coding agent, through its ACP adapter",
    protocol: 'acp',
    program: {
      argv: ['codex-acp'],
      version_argv: ['codex-acp', '--version'],
      install_hint: 'npm install -g @agentclientprotocol/codex-acp',
      sign_in: {
        env: ['CODEX_API_KEY', 'OPENAI_API_KEY'],
        files: ['.codex/auth.json'],
        otherwise: 'no',
        hint: 'codex-acp login, or CODEX_API_KEY or OPENAI_API_KEY in env',
      },
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [{ env: { INITIAL_AGENT_MODE: 'read-only' } }, { session_mode: 'read-only' }],
      acting_modes: ['agent', 'agent-full-access', 'auto', 'full-access', 'workspace-write'],
      note: 'In its mode “read-only” (also set by INITIAL_AGENT_MODE), asks before edits and before commands that leave its sandbox. Commands in the sandbox, which can only read, run without asking.',
    },
    state_dirs: ['.codex'],
    notes: [
      'A key in the environment takes effect once the session is authenticated with api-key, or automatically with DEFAULT_AUTH_REQUEST={"methodId":"api-key"} in env.',
    ],
  },
  {
    id: 'gemini',
    name: 'Gemini CLI',
    description: "Google's coding agent",
    protocol: 'acp',
    program: {
      argv: ['gemini', '--acp'],
      version_argv: ['gemini', '--version'],
      install_hint: 'npm install -g @google/gemini-cli',
      sign_in: {
        env: ['GEMINI_API_KEY'],
        files: ['.gemini/oauth_creds.json', '.gemini/gemini-credentials.json'],
        otherwise: 'unknown',
        hint: 'run gemini once and sign in, or GEMINI_API_KEY in env',
      },
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [{ session_mode: 'default' }],
      acting_modes: ['autoEdit', 'yolo'],
      note: 'In its mode “default”, asks before edits, commands and fetches.',
    },
    state_dirs: ['.gemini'],
    notes: [
      'Does not exit on TERM: stopping it takes the whole grace period.',
      'Without -m it first asks a router for the model; to skip that, name a model in argv.',
    ],
  },
  {
    id: 'opencode',
    name: 'OpenCode',
    description: 'Open source coding agent for many model providers',
    protocol: 'acp',
    program: {
      argv: ['opencode', 'acp'],
      version_argv: ['opencode', '--version'],
      install_hint: 'npm install -g opencode-ai',
      sign_in: {
        env: ['OPENCODE_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY'],
        files: ['.local/share/opencode/auth.json'],
        otherwise: 'unknown',
        hint: "opencode auth login, or a provider's key in env",
      },
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [
        {
          env: {
            OPENCODE_PERMISSION: JSON.stringify(opencodePermissions),
            // Without this, a repository's own settings for the agent would override the permissions above.
            OPENCODE_CONFIG_CONTENT: JSON.stringify({
              agent: { build: { permission: opencodePermissions } },
            }),
          },
        },
        { session_mode: 'build' },
      ],
      acting_modes: [],
      note: 'In its mode “build” (OPENCODE_PERMISSION, OPENCODE_CONFIG_CONTENT), asks before edits, commands and fetches; its own default is to allow them. A repository’s opencode.json can still allow everything with a wildcard. Tested with version 1 only: version 2 has different permission rules, so run svc agents doctor --preset opencode before you rely on it.',
    },
    state_dirs: ['.config/opencode', '.local/share/opencode', '.local/state/opencode', '.cache/opencode'],
    notes: ['Opens a session without a login; some models work without one.'],
  },
  {
    id: 'qwen',
    name: 'Qwen Code',
    description: "Alibaba's coding agent, for any OpenAI-compatible model",
    protocol: 'acp',
    program: {
      argv: ['qwen', '--acp'],
      version_argv: ['qwen', '--version'],
      install_hint: 'npm install -g @qwen-code/qwen-code',
      sign_in: {
        env: ['OPENAI_API_KEY', 'DASHSCOPE_API_KEY'],
        files: [],
        otherwise: 'unknown',
        hint: 'run qwen once and use /auth, or OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL in env',
      },
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [{ session_mode: 'default' }],
      acting_modes: ['auto', 'auto-edit', 'yolo'],
      note: 'In its mode “default”, asks before edits, commands and fetches.',
    },
    state_dirs: ['.qwen'],
    notes: [
      'Offers two permanent approvals of the same kind, for the project and for the user.',
      'svc does not see what /auth writes to its settings.',
    ],
  },
  {
    id: 'goose',
    name: 'goose',
    description: 'Open source agent for engineering tasks and many model providers',
    protocol: 'acp',
    program: {
      argv: ['goose', 'acp'],
      version_argv: ['goose', '--version'],
      install_hint: 'the release of block/goose for this machine',
      sign_in: {
        env: ['GOOSE_PROVIDER'],
        files: ['.config/goose/config.yaml'],
        otherwise: 'no',
        hint: "goose configure, or GOOSE_PROVIDER, GOOSE_MODEL and the provider's key in env",
      },
    },
    env: {},
    permission: {
      guarantee: 'ask',
      apply: [{ env: { GOOSE_MODE: 'approve' } }],
      acting_modes: [],
      note: 'Asks before its tools (GOOSE_MODE=approve): its own default is to run all of them.',
    },
    state_dirs: ['.config/goose', '.local/share/goose', '.local/state/goose'],
    notes: ['Without a desktop, set GOOSE_DISABLE_KEYRING=1 to keep keys in a file.'],
  },
  {
    id: 'copilot',
    name: 'GitHub Copilot',
    description: "GitHub's coding agent",
    protocol: 'acp',
    program: {
      argv: ['copilot', '--acp', '--stdio'],
      version_argv: ['copilot', '--no-auto-update', '--version'],
      install_hint: 'npm install -g @github/copilot',
      sign_in: {
        env: ['COPILOT_GITHUB_TOKEN', 'GH_TOKEN', 'GITHUB_TOKEN'],
        files: [],
        otherwise: 'unknown',
        hint: 'copilot login, or COPILOT_GITHUB_TOKEN in env',
      },
    },
    env: {},
    permission: {
      guarantee: 'none',
      apply: [],
      acting_modes: [],
      note: 'Releases after 1.0.80 were reported to run tools without asking over ACP (github/copilot-cli issue 4537).',
    },
    state_dirs: ['.copilot'],
    notes: ['Updates itself at run time: svc shows the version that was installed.'],
  },
  {
    id: 'cursor',
    name: 'Cursor',
    description: "Cursor's coding agent",
    protocol: 'acp',
    program: {
      argv: ['cursor-agent', 'acp'],
      version_argv: ['cursor-agent', '--version'],
      install_hint: 'the Cursor CLI for this machine, which installs to ~/.local/bin',
      sign_in: {
        env: ['CURSOR_API_KEY'],
        files: ['.config/cursor/auth.json', '.cursor/auth.json'],
        otherwise: 'unknown',
        hint: 'cursor-agent login, or CURSOR_API_KEY in env',
      },
    },
    env: {},
    permission: {
      guarantee: 'none',
      apply: [],
      acting_modes: [],
      note: 'Its own settings decide; there is no known way to make it ask.',
    },
    state_dirs: ['.cursor', '.config/cursor'],
    notes: [],
  },
  {
    id: 'droid',
    name: 'Factory Droid',
    description: "Factory's coding agent",
    protocol: 'acp',
    program: {
      argv: ['droid', 'exec', '--output-format', 'acp'],
      version_argv: ['droid', '--version'],
      install_hint: 'npm install -g droid',
      sign_in: {
        env: ['FACTORY_API_KEY'],
        files: ['.factory/auth.v2.file', '.factory/auth.v2.keyring', '.factory/auth.v2.loginkeychain'],
        otherwise: 'no',
        hint: 'run droid once and sign in, or FACTORY_API_KEY in env',
      },
    },
    env: { DROID_DISABLE_AUTO_UPDATE: 'true' },
    permission: {
      guarantee: 'none',
      apply: [],
      acting_modes: [],
      note: 'Its own settings decide; there is no known way to make it ask.',
    },
    state_dirs: ['.factory'],
    notes: ['Does not update itself under svc (DROID_DISABLE_AUTO_UPDATE).'],
  },
  {
    id: 'pi',
    name: 'pi',
    description: 'Small open source coding agent for many model providers, through its ACP adapter',
    protocol: 'acp',
    program: {
      argv: ['pi-acp'],
      version_argv: ['pi', '--version'],
      install_hint: 'npm install -g pi-acp @earendil-works/pi-coding-agent',
      sign_in: {
        env: ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY'],
        files: ['.pi/agent/auth.json'],
        otherwise: 'unknown',
        hint: "run pi once and use /login, or a provider's key in env",
      },
    },
    env: {},
    permission: {
      guarantee: 'none',
      apply: [],
      acting_modes: [],
      note: 'Runs its tools without asking: pi has no permission prompts.',
    },
    state_dirs: ['.pi'],
    notes: ['The adapter starts pi, so install both; the version is that of pi.'],
  },
  {
    id: 'acp',
    name: 'Other ACP agent',
    description: 'Any command that speaks the Agent Client Protocol on stdin and stdout',
    protocol: 'acp',
    program: null,
    env: {},
    permission: {
      guarantee: 'none',
      apply: [],
      acting_modes: [],
      note: 'Whether it asks depends on your command.',
    },
    state_dirs: [],
    notes: [],
  },
  {
    id: 'plain',
    name: 'Command',
    description: 'Any command; svc shows its output',
    protocol: 'plain',
    program: null,
    env: {},
    permission: {
      guarantee: 'none',
      apply: [],
      acting_modes: [],
      note: 'A plain command cannot ask.',
    },
    state_dirs: [],
    notes: [],
  },
];

/** The preset with this id, or null. */
export function findPreset(id: string): Preset | null {
  return presets.find((preset) => preset.id === id) ?? null;
}
