/**
 * Checks whether the node at the other end of a link answers now. At most one check is in progress; further callers
 * wait for the same answer. An unanswered check costs its first caller `limits.node_answer_ms` and later callers
 * nothing.
 */
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';

interface Check {
  /** In ms of `performance.now()`. */
  asked_at: number;
  answer: Promise<void>;
  /** A caller was rejected because no answer had arrived in time. */
  overdue: boolean;
}

export class Reachability {
  readonly #ask: () => Promise<void>;
  readonly #onBack: () => void;
  #check: Check | null = null;

  /** `ask` resolves when the node has answered, or throws a Problem. `onBack`: an answer arrived after the deadline. */
  constructor(ask: () => Promise<void>, onBack: () => void) {
    this.#ask = ask;
    this.#onBack = onBack;
  }

  /** Throws the error of the check, or `node_unreachable` if the answer is overdue. */
  async reach(): Promise<void> {
    this.#check ??= this.#startCheck();
    const check = this.#check;
    const left_ms = check.asked_at + limits.node_answer_ms - performance.now();
    let timer: NodeJS.Timeout | undefined;
    const overdue = new Promise<never>((_resolve, reject) => {
      const late = () => {
        check.overdue = true;
        reject(problems.nodeUnreachable());
      };
      if (left_ms <= 0) late();
      // First process messages that arrived while this process was busy.
      else timer = setTimeout(() => setImmediate(late), left_ms);
    });
    try {
      await Promise.race([overdue, check.answer]);
    } finally {
      clearTimeout(timer);
    }
  }

  #startCheck(): Check {
    const answered = () => {
      this.#check = null;
      if (check.overdue) this.#onBack();
    };
    const failed = (error: unknown) => {
      this.#check = null;
      throw error;
    };
    const answer = this.#ask().then(answered, failed);
    const check: Check = { asked_at: performance.now(), overdue: false, answer };
    // There may be no caller left when it fails.
    answer.catch(() => {});
    return check;
  }
}
