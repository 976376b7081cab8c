/** Answers several reviews at once, with a one-time option that all of them have. */
import { useMutation } from '@tanstack/react-query';
import type { Option } from '../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../core/visible.ts';
import { useReply } from '../../reviews/answer.ts';
import { commonOptions, type ReviewView, sameOption } from '../../reviews/review-view.ts';
import { Button } from '../../ui/button.tsx';
import { useOnline } from '../../ui/online.ts';
import { ActionError } from '../../ui/states.tsx';

/** `reviews`: the selected pending ones. */
export function AnswerMany({ reviews, onDone }: { reviews: readonly ReviewView[]; onDone: () => void }) {
  const reply = useReply();
  const online = useOnline();
  const answer = useMutation({
    mutationFn: async (option: Option) => {
      for (const review of reviews) {
        const { option_id } = sameOption(option, review)!;
        await reply(review, { type: 'option', option_id });
      }
    },
    onSuccess: onDone,
  });
  const options = commonOptions(reviews);
  // The number shrinks while they are answered one by one.
  if (reviews.length < 2 && !answer.isPending && !answer.isError) return null;
  return (
    <section
      aria-label="Answer the selected requests"
      className="sticky bottom-0 z-10 flex flex-wrap items-center gap-2 border-line border-t bg-raised px-3 py-2 md:px-4"
    >
      <span>{reviews.length} selected</span>
      {options.map((option) => (
        <Button
          key={option.option_id}
          disabled={!online}
          busy={answer.isPending}
          onClick={() => answer.mutate(option)}
        >
          <bdi>{escapeHidden(option.name)}</bdi>
        </Button>
      ))}
      {options.length === 0 && (
        <span className="text-muted">
          The selected requests have no one-time option in common. Answer them one at a time.
        </span>
      )}
      {!online && <span className="text-muted">You are offline. Answer when you are back online.</span>}
      <Button
        variant="quiet"
        onClick={() => {
          answer.reset();
          onDone();
        }}
      >
        Clear selection
      </Button>
      <ActionError error={answer.error} />
    </section>
  );
}
