import { ERROR_CATALOGUE, type ErrorKind, FIELD_ERROR_CATALOGUE } from '../../contracts/index.js';

const byCode = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);

function errorTable(): string {
  const rows = Object.entries<ErrorKind>(ERROR_CATALOGUE)
    .sort(byCode)
    .map(([code, { status, category, title, retryable }]) => {
      return `| \`${code}\` | ${status} | ${category} | ${retryable ? 'yes' : 'no'} | ${title}. |`;
    });
  return ['| code | status | category | worth a retry | meaning |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}

function fieldTable(): string {
  const rows = Object.entries(FIELD_ERROR_CATALOGUE)
    .sort(byCode)
    .map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return ['| code | meaning |', '|---|---|', ...rows].join('\n');
}

/** Both catalogues of error codes as Markdown, sorted by code. */
export function renderErrorTables(): string {
  return `## Codes\n\n${errorTable()}\n\n## Codes of fields\n\nIn \`errors[].code\` of a refused document.\n\n${fieldTable()}`;
}
