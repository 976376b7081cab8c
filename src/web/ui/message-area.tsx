/** The text field for a message. It grows with its lines, and Ctrl+Enter or Cmd+Enter sends. */
import type { ComponentProps } from 'react';
import { cx } from './cx.ts';
import { inputClass } from './field.tsx';
import { hasModifier, isComposing, MOD } from './keys.ts';
import { useTouch } from './media.ts';

export function MessageArea({
  text,
  onText,
  onSend,
  ...area
}: {
  text: string;
  onText: (text: string) => void;
  onSend: () => void;
} & Pick<ComponentProps<'textarea'>, 'ref' | 'aria-invalid' | 'aria-describedby'>) {
  const is_touch = useTouch();
  return (
    <textarea
      {...area}
      aria-label="Message"
      dir="auto"
      rows={Math.min(8, Math.max(2, text.split('\n').length))}
      value={text}
      onChange={(event) => onText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !hasModifier(event.nativeEvent) || isComposing(event.nativeEvent))
          return;
        event.preventDefault();
        onSend();
      }}
      placeholder={is_touch ? 'Message' : `Message  ${MOD} ⏎`}
      className={cx(inputClass, 'resize-none text-prose')}
    />
  );
}
