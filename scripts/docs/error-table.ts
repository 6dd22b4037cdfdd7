import { ERROR_CATALOGUE, type ErrorKind } from '../../contracts/index.js';

/** The catalogue of error codes as a Markdown table, sorted by code. */
export function renderErrorTable(): string {
  const rows = Object.entries<ErrorKind>(ERROR_CATALOGUE)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([code, { status, category, title, retryable }]) =>
        `| \`${code}\` | ${status} | ${category} | ${retryable ? 'yes' : 'no'} | ${title}. |`,
    );
  return ['| code | status | category | worth a retry | meaning |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}
