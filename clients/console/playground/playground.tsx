import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { route } from '../app/router.js';
import { may } from '../app/session.js';
import { Notice } from '../parts/notice.js';
import { useStored } from '../parts/stored.js';
import '../style/playground.css';
import { words } from '../parts/format.js';
import { Prompts } from './prompts.js';
import { type Choice, choicesOf, DEFAULT_SETTINGS, NUMBERS, type Settings } from './request.js';
import { Side } from './side.js';
import { Sides } from './sides.js';
import { templateOf } from './template.js';

/** Newest entries of each kind that are offered. Others can be entered by their id. */
const OFFERED = 200;

async function readChoices(): Promise<Choice[]> {
  const [models, checkpoints, jobs] = await Promise.all([
    may('models') ? collect(client.models.list(), OFFERED) : [],
    may('jobs:read') ? collect(client.checkpoints.list(), OFFERED) : [],
    may('jobs:read') ? collect(client.jobs.list(), OFFERED) : [],
  ]);
  return choicesOf(models, checkpoints, jobs);
}

/** Asks one model, or two side by side. */
export function Playground() {
  const settings = useStored<Settings>('playground.settings', DEFAULT_SETTINGS);
  const linked = route.value.query.get('model');
  const sides = useSignal(new Sides(linked ?? '')).value;
  const prompt = useSignal('');
  const { value, fault } = useLoaded(readChoices, []);
  const setMode = (chosen: Settings['mode']) => {
    settings.value = { ...settings.value, mode: chosen };
  };
  useEffect(() => () => sides.stop(), [sides]);
  useEffect(() => {
    const [first] = sides.list.value;
    if (linked === null || first === undefined) return;
    first.model.value = linked;
    // A model with a chat template begins as a chat.
    void templateOf(linked).then((template) => setMode(template === null ? 'text' : 'chat'));
  }, [linked, sides]);
  const ask = (event: Event) => {
    event.preventDefault();
    void sides.ask(settings.value, prompt.value);
    if (settings.value.mode === 'chat') prompt.value = '';
  };
  const choices = value.value ?? [];
  const { mode } = settings.value;
  return (
    <>
      <div class="title">
        <h1>Playground</h1>
        <span class="spring" />
        <select
          aria-label="Mode"
          value={mode}
          onChange={(event) => setMode(event.currentTarget.value as Settings['mode'])}
        >
          <option value="chat">chat</option>
          <option value="text">text</option>
        </select>
        <button type="button" onClick={() => sides.clear()}>
          {mode === 'chat' ? 'New chat' : 'Clear'}
        </button>
        <button type="button" onClick={() => sides.toggleSecond()}>
          {sides.list.value.length === 1 ? 'Compare with another' : 'Only the first'}
        </button>
      </div>
      {fault.value && <Notice fault={fault.value} />}
      <datalist id="models">
        {choices.map(({ id, label }) => (
          <option key={id} value={id} label={label} />
        ))}
      </datalist>
      <div class="columns">
        {sides.list.value.map((side, index) => (
          <Side key={side.key} side={side} number={index + 1} choices={choices} />
        ))}
      </div>
      <form class="card ask" onSubmit={ask}>
        <label>
          {mode === 'chat' ? 'Message' : 'Text to continue'}
          <textarea
            rows={4}
            required
            value={prompt.value}
            onInput={(event) => (prompt.value = event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey))
                event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <div class="filters">
          <Prompts mode={mode} prompt={prompt} />
          <button type="submit" class="primary" disabled={sides.isBusy.value || !sides.isReady.value}>
            {mode === 'chat' ? 'Send' : 'Continue'}
          </button>
          <button type="button" disabled={!sides.isBusy.value} onClick={() => sides.stop()}>
            Stop
          </button>
          <span class="small muted">
            {sides.isReady.value ? 'Ctrl + Enter' : 'Choose a checkpoint or an uploaded model above.'}
          </span>
        </div>
        <details>
          <summary>Settings</summary>
          <SettingsFields settings={settings} />
        </details>
      </form>
    </>
  );
}

function SettingsFields({ settings }: { settings: Signal<Settings> }) {
  const change = (changed: Partial<Settings>) => {
    settings.value = { ...settings.value, ...changed };
  };
  const { mode, system, logprobs } = settings.value;
  return (
    <fieldset>
      <legend class="hidden">Settings</legend>
      {NUMBERS.map((name) => (
        <label key={name}>
          {words(name)}
          <input
            type="number"
            min="0"
            step={name === 'temperature' || name === 'top_p' ? 'any' : 1}
            value={settings.value[name]}
            onInput={(event) => change({ [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      <label class="check">
        <input
          type="checkbox"
          checked={logprobs}
          onChange={(event) => change({ logprobs: event.currentTarget.checked })}
        />
        log-probabilities
      </label>
      {mode === 'chat' && (
        <label class="wide">
          System message
          <input
            type="text"
            value={system}
            onInput={(event) => change({ system: event.currentTarget.value })}
          />
        </label>
      )}
    </fieldset>
  );
}
