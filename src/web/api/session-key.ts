/** The storage key of the session. A separate file, because tests write a session too. */
export const SESSION_KEY = 'svc.session';
