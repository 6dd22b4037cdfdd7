import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type JobSpec, type ResolvedJobSpec, resolveSpec } from '../contracts/index.js';
import { projectRoot } from '../platform/root.js';
import { loadContract } from './operations.js';

const contract = loadContract();

interface Examples<T> {
  [name: string]: { value: T };
}
interface ContractWithExamples {
  paths: Record<
    string,
    { post: { requestBody: { content: { 'application/json': { examples: Examples<unknown> } } } } }
  >;
  components: { examples: { QueuedJob: { value: { spec: ResolvedJobSpec } } } };
}
const { paths, components } = contract.document as unknown as ContractWithExamples;

function examplesOf<T>(path: string): [string, T][] {
  const examples = paths[path]?.post.requestBody.content['application/json'].examples ?? {};
  return Object.entries(examples).map(([name, { value }]) => [name, value as T]);
}

/** What the schema and the rules have against a document. */
function problems(spec: JobSpec): unknown[] {
  const { errors } = resolveSpec(spec, null, { validate: contract.jobSpecErrors });
  return [...contract.jobSpecErrors(spec), ...errors];
}

t.test('the examples of the contract are accepted', async (t) => {
  const jobs = examplesOf<JobSpec>('/v1/jobs');
  t.ok(jobs.length >= 4);
  for (const [name, spec] of jobs) t.same(problems(spec), [], name);
  for (const [name, { spec }] of examplesOf<{ spec: JobSpec }>('/v1/estimate'))
    t.same(problems(spec), [], name);
});

t.test('the example of a job has the resolved document of the example that makes it', async (t) => {
  const [, spec] = examplesOf<JobSpec>('/v1/jobs').find(([name]) => name === 'two_ranks') ?? [];
  if (spec === undefined) throw new Error('no such example');
  t.same(resolveSpec(spec, null).spec, components.examples.QueuedJob.value.spec);
});

t.test('the job documents of the documentation are accepted', async (t) => {
  for (const page of ['job-spec.md', 'deepspeed.md']) {
    const text = readFileSync(join(projectRoot(), 'docs', page), 'utf8');
    const documents = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(
      ([, json = '']) => JSON.parse(json) as JobSpec,
    );
    t.ok(documents.length > 0, page);
    for (const document of documents) t.same(problems(document), [], page);
  }
});
