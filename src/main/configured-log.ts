import { type LogFile, openLog } from '../base/log.ts';
import type { Config } from '../core/config.ts';
import { invalid } from '../core/problem.ts';

/** Opens the log that the configuration describes. Throws `invalid_config` if its file cannot be opened. */
export function openConfiguredLog(config: Config): LogFile {
  const output = config.get('logging.output');
  try {
    const brief = output === null && process.stderr.isTTY === true;
    const [level, format] = [config.get('logging.level'), config.get('logging.format')];
    return openLog({ level, format, output, brief });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw invalid(`logging.output ${output} cannot be opened: ${code ?? message}`, 'invalid_config');
  }
}
