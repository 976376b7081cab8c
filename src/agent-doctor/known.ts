/**
 * The agents that the doctor knows, each by its preset's id: how a command is told to be one of them, and what sends one to
 * the scripted model instead of its vendor. Everything goes by environment, or by files in a home of its own.
 */
import { basename } from 'node:path';
import { SCRIPTED_MODEL } from './model/server.ts';

export const agentNames = ['claude', 'codex', 'gemini', 'goose', 'opencode', 'qwen'] as const;
export type AgentName = (typeof agentNames)[number];

export interface Dress {
  env: Record<string, string>;
  /** By path below the home. */
  files: Record<string, string>;
}

const KEY = 'svc-doctor';

/** `url` is the model server's. */
const dresses: Record<AgentName, (url: string) => Partial<Dress>> = {
  claude: (url) => ({
    env: {
      ...anthropicEnv(url),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // The script calls only tools that it is offered.
      ENABLE_TOOL_SEARCH: 'false',
      IS_SANDBOX: '1',
    },
  }),
  codex: (url) => ({ env: openaiEnv(url), files: { '.codex/config.toml': codexConfig(url) } }),
  gemini: (url) => ({
    env: { ...geminiEnv(url), GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    files: { '.gemini/settings.json': settings('gemini-api-key', { general: { enableAutoUpdate: false } }) },
  }),
  goose: (url) => ({
    env: { ...openaiEnv(url), OPENAI_HOST: url, GOOSE_PROVIDER: 'openai', GOOSE_MODEL: SCRIPTED_MODEL },
  }),
  opencode: (url) => ({
    env: {
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    files: { '.config/opencode/opencode.json': json(opencodeConfig(url)) },
  }),
  qwen: (url) => ({
    env: openaiEnv(url),
    files: {
      '.qwen/settings.json': settings('openai', {
        general: { enableAutoUpdate: false },
        tools: { toolSearch: { enabled: false } },
      }),
    },
  }),
};

/** By a word of the command: the name of a program, or of the package that it lies in. */
export function guessAgent(argv: readonly string[]): AgentName | null {
  const names = argv.flatMap((word) => [basename(word), word.split('node_modules/').slice(1).join()]);
  return agentNames.find((agent) => names.some((name) => new RegExp(`\\b${agent}`).test(name))) ?? null;
}

/** For an agent that is not known: everything that any of them might listen to. */
export function dressFor(name: AgentName | null, url: string): Dress {
  const usual = { env: { ...openaiEnv(url), ...anthropicEnv(url), ...geminiEnv(url) }, files: {} };
  return { ...usual, ...(name && { env: {}, ...dresses[name](url) }) };
}

function openaiEnv(url: string): Record<string, string> {
  return { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: KEY, OPENAI_MODEL: SCRIPTED_MODEL };
}

function anthropicEnv(url: string): Record<string, string> {
  return { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY };
}

function geminiEnv(url: string): Record<string, string> {
  return { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: KEY };
}

function codexConfig(url: string): string {
  return `model = "${SCRIPTED_MODEL}"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`;
}

function opencodeConfig(url: string): object {
  const model = `scripted/${SCRIPTED_MODEL}`;
  return {
    model,
    small_model: model,
    autoupdate: false,
    share: 'disabled',
    provider: {
      scripted: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${url}/v1`, apiKey: KEY },
        models: { [SCRIPTED_MODEL]: {} },
      },
    },
  };
}

/** Of Gemini, and of Qwen, which descends from it. */
function settings(selectedType: string, more: object = {}): string {
  const privacy = { usageStatisticsEnabled: false };
  return json({ security: { auth: { selectedType } }, privacy, ...more });
}

function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
