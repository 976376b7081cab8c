/** A frame of SSE text, parsed as a client would, for tests. */
export interface Frame {
  id: number;
  event: string;
  data: Record<string, unknown>;
}

/** Returns every complete frame with data. Skips `retry` blocks and an incomplete end. */
export function parseFrames(text: string): Frame[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .filter((block) => block.includes('data: '))
    .map((block) => {
      const fields = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      return { id: Number(fields.id), event: fields.event!, data: JSON.parse(fields.data!) };
    });
}
