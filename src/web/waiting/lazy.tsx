/** Loads the cards when they are needed: most conversations never need them. */
import { lazy, Suspense } from 'react';
import type { QuestionCardProps } from './question-card.tsx';
import type { SignInCardProps } from './sign-in-card.tsx';

const Question = lazy(() =>
  import('./question-card.tsx').then((module) => ({ default: module.QuestionCard })),
);
const SignIn = lazy(() => import('./sign-in-card.tsx').then((module) => ({ default: module.SignInCard })));

const loading = <p role="status">Loading the request…</p>;

export function LazyQuestionCard(props: QuestionCardProps) {
  return (
    <Suspense fallback={loading}>
      <Question {...props} />
    </Suspense>
  );
}

export function LazySignInCard(props: SignInCardProps) {
  return (
    <Suspense fallback={loading}>
      <SignIn {...props} />
    </Suspense>
  );
}
