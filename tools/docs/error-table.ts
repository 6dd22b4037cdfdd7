import {
  ERROR_CATALOGUE,
  type ErrorKind,
  type FailureCategory,
  FIELD_ERROR_CATALOGUE,
  SHARED_FIELD_CODES,
} from '../../contracts/index.js';

const byCode = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);

/** Heading of each category in the documentation: who acts. */
const CATEGORIES: Record<FailureCategory, string> = {
  user: 'correct the request',
  data: 'correct the data',
  limit: 'free some of the quota, or ask an operator for more',
  capacity: 'wait, or add capacity',
  preempted: 'nothing, the job continues elsewhere',
  hardware: 'nothing, the job is retried',
  oom: 'use less memory per rank, or other machines',
  diverged: 'change the training',
  internal: 'the operator acts, or reports a bug',
};

function categoryTable(category: FailureCategory): string {
  const rows = Object.entries<ErrorKind>(ERROR_CATALOGUE)
    .filter(([, kind]) => kind.category === category)
    .sort(byCode)
    .map(
      ([code, { status, title, retryable }]) =>
        `| \`${code}\` | ${status}${retryable ? ', retry' : ''} | ${title}. |`,
    );
  const heading = `### ${category}: ${CATEGORIES[category]}\n`;
  return [heading, '| code | status | meaning |', '|---|---|---|', ...rows].join('\n');
}

function fieldTable(): string {
  const shared = [...SHARED_FIELD_CODES].sort().map((code) => `\`${code}\``);
  const rows = Object.entries(FIELD_ERROR_CATALOGUE)
    .sort(byCode)
    .map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  const first = `| ${shared.join(', ')} | As above, of the field. |`;
  return ['| code | meaning |', '|---|---|', first, ...rows].join('\n');
}

/** Both catalogues of error codes as Markdown: the codes by category, then those of fields, each sorted by code. */
export function renderErrorTables(): string {
  const categories = Object.keys(CATEGORIES) as FailureCategory[];
  const intro = 'In `errors[].code` of a refused document.';
  return ['## Codes', ...categories.map(categoryTable), '## Codes of fields', intro, fieldTable()].join(
    '\n\n',
  );
}
