/**
 * Whether the node at the other end of a link answers now. At most one question is under way; whoever asks meanwhile waits
 * for the same answer. A question that stays unanswered costs its first caller `limits.node_answer_ms` and later ones nothing.
 */
import { limits } from '../base/limits.ts';
import { problems } from '../domain/problem.ts';

interface Question {
  /** `performance.now()` */
  asked_at: number;
  answer: Promise<void>;
  /** Somebody was turned away because of it. */
  overdue: boolean;
}

export class Reachability {
  readonly #ask: () => Promise<void>;
  readonly #onBack: () => void;
  #question: Question | null = null;

  /** `ask` resolves when the node has answered, or throws a Problem. `onBack`: an answer came after it was overdue. */
  constructor(ask: () => Promise<void>, onBack: () => void) {
    this.#ask = ask;
    this.#onBack = onBack;
  }

  /** Throws what the question failed with, or `node_unreachable` when the answer is overdue. */
  async reach(): Promise<void> {
    this.#question ??= this.#put();
    const question = this.#question;
    const left_ms = question.asked_at + limits.node_answer_ms - performance.now();
    let timer: NodeJS.Timeout | undefined;
    const overdue = new Promise<never>((_resolve, reject) => {
      const late = () => {
        question.overdue = true;
        reject(problems.nodeUnreachable());
      };
      if (left_ms <= 0) late();
      // What came while this process was busy is read first.
      else timer = setTimeout(() => setImmediate(late), left_ms);
    });
    try {
      await Promise.race([overdue, question.answer]);
    } finally {
      clearTimeout(timer);
    }
  }

  #put(): Question {
    const answered = () => {
      this.#question = null;
      if (question.overdue) this.#onBack();
    };
    const failed = (error: unknown) => {
      this.#question = null;
      throw error;
    };
    const answer = this.#ask().then(answered, failed);
    const question: Question = { asked_at: performance.now(), overdue: false, answer };
    // Nobody may wait for it any more when it fails.
    answer.catch(() => {});
    return question;
  }
}
