/** Before the name of an agent with events that the user has not seen. */
export function UnreadDot() {
  return (
    <span
      role="img"
      aria-label="unread"
      title="Unread events"
      className="size-1.5 shrink-0 rounded-full bg-accent"
    />
  );
}
