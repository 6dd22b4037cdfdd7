// Operations of the Python client: each operation of openapi.yaml is a method. Paths below one with a parameter, such
// as /v1/jobs/{job_id}, are a class (`client.jobs.pause`); the other operations are methods of the client
// (`client.get_me`).
import { docstring, parameterName, pascal, snake } from './text.mjs';

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';
const BYTES = 'application/octet-stream';
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

const segmentOf = (path) => /^\/v1\/([\w-]+)/.exec(path)?.[1] ?? '';

/** The operations of a document with their references resolved. */
function operationsOf(document) {
  const resolve = (item) =>
    item.$ref
      ? item.$ref
          .slice(2)
          .split('/')
          .reduce((at, key) => at[key], document)
      : item;
  const resources = new Set(
    Object.keys(document.paths)
      .filter((path) => /^\/v1\/[\w-]+\/\{/.test(path))
      .map(segmentOf),
  );
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const operation = item[method];
      const resource = resources.has(segmentOf(path)) ? segmentOf(path).replaceAll('-', '_') : null;
      return {
        path,
        method: method.toUpperCase(),
        resource,
        name: methodName(operation.operationId, resource),
        text: operation.description ?? operation.summary,
        parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve),
        body: operation.requestBody && resolve(operation.requestBody),
        answers: Object.entries(operation.responses)
          .filter(([status]) => /^2/.test(status))
          .map(([status, answer]) => ({ status, content: resolve(answer).content ?? {} })),
      };
    }),
  );
}

/** `listJobEvents` of jobs is `list_events`. */
function methodName(operationId, resource) {
  const name = snake(operationId);
  return resource === null ? name : name.replace(new RegExp(`_${resource.slice(0, -1)}s?(?=_|$)`), '');
}

/** How an answer is read: the transport's method, the Python type, and a suffix that takes the wanted part. */
function reading(types, { answers, parameters, name }) {
  const content = answers[0].content;
  const json = content[JSON_TYPE]?.schema;
  if (!json) {
    const [type] = Object.keys(content);
    if (type === undefined) return { call: 'empty', type: 'None' };
    if (type === EVENTS) return { call: 'events', type: 'EventStream' };
    return type.startsWith('text/') || type.endsWith('yaml')
      ? { call: 'text', type: 'str' }
      : { call: 'open', type: 'ByteStream' };
  }
  const object = types.merged(json);
  const fields = Object.keys(object.properties ?? {});
  const item = () => qualified(types.expression(object.properties.data.items, pascal(name)));
  if (fields.includes('next_cursor') && parameters.some((parameter) => parameter.name === 'after')) {
    return { call: 'pages', type: `Iterator[${item()}]` };
  }
  if (fields.join() === 'data') return { call: 'json', type: `List[${item()}]`, part: '["data"]' };
  return { call: 'json', type: qualified(types.expression(json, pascal(name))) };
}

const BUILT_IN = /^(?:str|int|float|bool|None|Any|Optional|Union|List|Dict|Literal)$/;

/** A type expression for another module than the types' own. */
const qualified = (expression) =>
  expression.replace(/"[^"]*"|\w+/g, (word) =>
    word.startsWith('"') || BUILT_IN.test(word) ? word : `schemas.${word}`,
  );

function argumentOf(types, operation, parameter) {
  const type = qualified(types.expression(parameter.schema, pascal(`${operation.name}_${parameter.name}`)));
  return { ...parameter, python: parameterName(parameter.name), type };
}

/** Arguments of the body: a JSON document, or content with its type. */
function bodyArguments(types, { body, name, streamed }) {
  if (!body) return { first: [], named: [], passed: [] };
  const json = body.content[JSON_TYPE]?.schema;
  if (json) {
    const type = qualified(types.expression(json, `${pascal(name)}Body`));
    const first = body.required ? `body: ${type}` : `body: Optional[${type}] = None`;
    const asks = streamed && types.merged(json).properties?.stream;
    return { first: [first], named: [], passed: [asks ? 'body={**body, "stream": True}' : 'body=body'] };
  }
  const [type] = Object.keys(body.content);
  return {
    first: [body.required === false ? 'content: Optional[Content] = None' : 'content: Content'],
    named: [`content_type: str = "${type}"`],
    passed: ['content=content', 'content_type=content_type'],
  };
}

/** A dictionary of parameters, an entry per line. */
function entries(list) {
  const lines = list.map(({ name, python }) => `                "${name}": ${python},\n`);
  return `{\n${lines.join('')}            }`;
}

function methodText(types, operation) {
  const all = operation.parameters.map((parameter) => argumentOf(types, operation, parameter));
  const [path, query, header] = ['path', 'query', 'header'].map((location) =>
    all.filter((one) => one.in === location),
  );
  const { call, type, part = '' } = reading(types, operation);
  const body = bodyArguments(types, operation);
  const named = [...query, ...header].sort(
    (a, b) => Number(b.required ?? false) - Number(a.required ?? false),
  );
  const keywords = [
    ...named.map(
      ({ python, type, required }) => `${python}: ${required ? type : `Optional[${type}] = None`}`,
    ),
    ...body.named,
  ].map((text) => text.replace(/Optional\[Optional\[(.*)\]\]/, 'Optional[$1]'));
  const signature = [
    'self',
    ...path.map(({ python, type }) => `${python}: ${type}`),
    ...body.first,
    ...(keywords.length > 0 ? ['*', ...keywords] : []),
  ];
  const url = operation.path.replace(/\{(\w+)\}/g, (_, name) => `{quoted(${parameterName(name)})}`);
  const passed = [
    ...(call === 'pages' ? [] : [`"${operation.method}"`]),
    `${path.length > 0 ? 'f' : ''}"${url}"`,
    ...(query.length > 0 ? [`query=${entries(query)}`] : []),
    ...(header.length > 0 ? [`headers=${entries(header)}`] : []),
    ...(operation.fixed ?? []),
    ...body.passed,
  ];
  const request = `self._http.${call}(\n            ${passed.join(',\n            ')},\n        )${part}`;
  const result =
    call === 'json' ? `answer: ${type} = ${request}\n        return answer` : `return ${request}`;
  const head = `    def ${operation.name}(\n        ${signature.join(',\n        ')},\n    ) -> ${type}:\n`;
  return `${head}${docstring(operation.text, '        ')}        ${result}\n`;
}

/** A boolean parameter that selects another answer is a method of its own: a dry run. */
function withoutAlternatives(operation) {
  const [first, second] = operation.answers.map(({ content }) => JSON.stringify(content[JSON_TYPE]?.schema));
  const flag = operation.parameters.find(({ schema }) => schema.type === 'boolean');
  if (second === undefined || first === second || !flag) return [operation];
  const parameters = operation.parameters.filter((parameter) => parameter !== flag);
  const fixed = [`query={"${flag.name}": True}`];
  return [
    { ...operation, parameters, answers: operation.answers.slice(1) },
    {
      ...operation,
      parameters,
      answers: operation.answers.slice(0, 1),
      name: flag.name,
      text: flag.description,
      fixed,
    },
  ];
}

/** An answer as JSON or as a stream is two methods; the second asks for a stream where the body can. */
function withoutStreams(operation) {
  const [{ status, content }] = operation.answers;
  if (!content[EVENTS] || !content[JSON_TYPE]) return [operation];
  const stream = { [EVENTS]: content[EVENTS] };
  const answers = [{ status, content: stream }];
  const words = operation.name.split('_').filter((word) => word !== 'create');
  return [operation, { ...operation, name: ['stream', ...words].join('_'), answers, streamed: true }];
}

/**
 * A page, or a file of the whole list in a format that the client selects, is two methods: `list_metrics` and
 * `metrics_file`.
 */
function withoutFormats(operation) {
  const isFormat = ({ name }) => name === 'format';
  const [{ status, content }] = operation.answers;
  const { [JSON_TYPE]: json, ...files } = content;
  const format = operation.parameters.find(isFormat);
  if (!json || Object.keys(files).length === 0 || !format) return [operation];
  const others = operation.parameters.filter((parameter) => !isFormat(parameter));
  const kinds = format.schema.enum.filter((kind) => kind !== 'json');
  const asked = { ...format, required: true, schema: { type: 'string', enum: kinds } };
  const answers = [{ status, content: { [BYTES]: {} } }];
  const name = `${operation.name.replace(/^list_/, '')}_file`;
  return [
    { ...operation, parameters: others },
    { ...operation, parameters: [asked, ...others], answers, name, text: format.description },
  ];
}

/** zerofleet/operations.py. */
export function operationsModule(types, document) {
  const operations = operationsOf(document)
    .flatMap(withoutAlternatives)
    .flatMap(withoutStreams)
    .flatMap(withoutFormats);
  const classOf = (resource) => `${pascal(resource ?? 'service')}Operations`;
  const resources = [...new Set(operations.map(({ resource }) => resource))];
  const classes = resources.map((resource) => {
    const own = operations.filter((operation) => operation.resource === resource);
    const methods = own.map((operation) => methodText(types, operation)).join('\n');
    return `\n\nclass ${classOf(resource)}(Resource):\n${methods}`;
  });
  return [
    '"""Operations of the API. Generated from openapi.yaml by `npm run generate`."""\n',
    'from __future__ import annotations\n',
    'from typing import Dict, Iterator, List, Literal, Optional, Union\n',
    'from . import schemas',
    'from .streams import ByteStream, EventStream',
    'from .transport import Content, Resource, quoted',
    ...classes,
  ].join('\n');
}
