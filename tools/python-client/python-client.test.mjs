// Forms of operations and schemas in Python. clients/python/tests/ and mypy test the modules of the whole contract.
import t from 'tap';
import { operationsModule } from './operations.mjs';
import { schemasModule, Types } from './schemas.mjs';

const json = (schema) => ({ 'application/json': { schema } });
const ref = (name) => ({ $ref: `#/components/schemas/${name}` });
const id = { name: 'job_id', in: 'path', required: true, schema: { type: 'string' } };

/** Methods by name, each in one line without spaces at line ends. */
function methodsOf(paths, schemas = {}) {
  const text = operationsModule(new Types(schemas), { paths, components: { schemas } });
  const methods = text.split(/^ {4}def /m).slice(1);
  return Object.fromEntries(methods.map((method) => [/^\w+/.exec(method)[0], method.replace(/\s+/g, ' ')]));
}

t.test('an operation below a path with a parameter is a method of its resource', async (t) => {
  const paths = {
    '/v1/jobs/{job_id}': {
      parameters: [id],
      patch: {
        operationId: 'updateJob',
        parameters: [{ name: 'If-Match', in: 'header', schema: { type: 'string' } }],
        requestBody: { required: true, content: json(ref('Patch')) },
        responses: { 200: { content: json(ref('Job')) }, 404: {} },
      },
    },
    '/v1/me': { get: { operationId: 'getMe', responses: { 204: {} } } },
  };
  const { update, get_me } = methodsOf(paths, { Patch: { type: 'string' }, Job: { type: 'string' } });
  t.match(
    update,
    'self, job_id: str, body: schemas.Patch, *, if_match: Optional[str] = None, ) -> schemas.Job:',
  );
  t.match(update, '"PATCH", f"/v1/jobs/{quoted(job_id)}", headers={ "If-Match": if_match, }, body=body,');
  t.match(get_me, /-> None: return self\._http\.empty\( "GET", "\/v1\/me", \)/);
});

t.test('pages are an iterator, and a list without pages is a list', async (t) => {
  const list = { data: { type: 'array', items: ref('Job') } };
  const page = { type: 'object', properties: { ...list, next_cursor: { type: 'string' } } };
  const after = { name: 'after', in: 'query', schema: { type: 'string' } };
  const operation = (operationId, schema, parameters) => ({
    get: { operationId, parameters, responses: { 200: { content: json(schema) } } },
  });
  const { list_all, list_few } = methodsOf(
    {
      '/v1/all': operation('listAll', page, [after]),
      '/v1/few': operation('listFew', { type: 'object', properties: list }, []),
    },
    { Job: { type: 'string' } },
  );
  t.match(list_all, /-> Iterator\[schemas\.Job\]: return self\._http\.pages\( "\/v1\/all"/);
  t.match(list_few, /-> List\[schemas\.Job\]: .* \)\["data"\] return answer/);
});

t.test('a file of a list is a method of its own', async (t) => {
  const page = {
    type: 'object',
    properties: { data: { type: 'array', items: ref('Point') }, next_cursor: { type: 'string' } },
  };
  const parameters = [
    { name: 'after', in: 'query', schema: { type: 'string' } },
    { name: 'format', in: 'query', schema: { type: 'string', enum: ['json', 'csv'] }, description: 'Text.' },
  ];
  const content = { ...json(page), 'text/csv': { schema: { type: 'string' } } };
  const { list_points, points_file } = methodsOf(
    { '/v1/points': { get: { operationId: 'listPoints', parameters, responses: { 200: { content } } } } },
    { Point: { type: 'string' } },
  );
  t.match(list_points, /-> Iterator\[schemas\.Point\]: return self\._http\.pages\( "\/v1\/points"/);
  t.notMatch(list_points, 'format');
  t.match(points_file, 'self, *, format: Literal["csv"], after: Optional[str] = None, ) -> ByteStream:');
  t.match(points_file, /"""Text\.""" return self\._http\.open\( "GET", .*"format": format,/);
});

t.test('another answer has a method of its own', async (t) => {
  const requestBody = {
    required: true,
    content: json({ type: 'object', properties: { stream: { type: 'boolean' } } }),
  };
  const flag = { name: 'dry_run', in: 'query', schema: { type: 'boolean' } };
  const both = { ...json({ type: 'string' }), 'text/event-stream': { schema: { type: 'string' } } };
  const methods = methodsOf({
    '/v1/answers': {
      post: { operationId: 'createAnswer', requestBody, responses: { 200: { content: both } } },
    },
    '/v1/plans': {
      post: {
        operationId: 'createPlan',
        parameters: [flag],
        responses: {
          200: { content: json({ type: 'integer' }) },
          201: { content: json({ type: 'string' }) },
        },
      },
    },
  });
  t.same(Object.keys(methods), ['create_answer', 'stream_answer', 'create_plan', 'dry_run']);
  t.match(methods.create_answer, /-> str: .*body=body,/);
  t.match(methods.stream_answer, /-> EventStream: .*\.events\(.*body=\{\*\*body, "stream": True\},/);
  t.match(methods.create_plan, /-> str: /);
  t.match(methods.dry_run, /-> int: .*query=\{"dry_run": True\},/);
});

t.test('schemas are classes and aliases, in an order that Python can evaluate', async (t) => {
  const text = schemasModule(
    new Types({
      Names: { type: 'array', items: ref('Name') },
      Name: { type: ['string', 'null'], enum: ['a', null], description: 'Ends with a "quote"' },
      Base: {
        type: 'object',
        required: ['from', 'id'],
        properties: { from: ref('Name'), id: { type: 'integer' } },
      },
      Whole: {
        allOf: [ref('Base'), { type: 'object', properties: { part: { type: 'object', properties: {} } } }],
      },
      Open: { type: 'object', additionalProperties: { type: 'number' } },
    }),
  );
  t.match(text, '_BaseNames = TypedDict("_BaseNames", {"from": "Name"})');
  t.match(text, 'class Base(_BaseNames):\n    id: int\n');
  t.match(text, 'class Whole(_WholeRequired, total=False):\n    part: WholePart\n');
  t.match(text, 'Name = Optional[Literal["a"]]\n"""Ends with a "quote" """\n\nNames = List[Name]\n');
  t.match(text, 'Open = Dict[str, float]\n');
  t.throws(() => schemasModule(new Types({ A: { type: 'array', items: ref('A') } })), /contains itself/);
});
