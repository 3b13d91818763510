-- Campaign figures: how each lead's last call ended, calls by quarter of an hour, and who last
-- changed a campaign's status.

-- One of LEAD_OUTCOMES; '': no call of the lead is over.
ALTER TABLE leads ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
UPDATE leads SET outcome = coalesce((
  SELECT CASE
    WHEN c.status = 'busy' THEN 'busy'
    WHEN c.status = 'no-answer' THEN 'no_answer'
    WHEN c.status = 'failed' AND c.end_reason = 'server_restarted' THEN 'interrupted'
    WHEN c.status = 'failed' AND c.end_reason = 'carrier_failed' THEN 'carrier_failed'
    WHEN c.status = 'failed' THEN 'failed'
    WHEN c.answered_by = 'machine' THEN 'voicemail'
    ELSE 'answered' END
  FROM calls c WHERE c.id = leads.call_id
    AND c.status NOT IN ('initiated', 'ringing', 'in-progress', 'ended')), '')
WHERE call_id IS NOT NULL AND status <> 'processing';
-- Counts and pages of a campaign's leads by state, without reading the leads themselves.
CREATE INDEX leads_by_state ON leads (campaign_id, status, outcome, updated_at, id)
  WHERE main_id IS NULL;
CREATE INDEX leads_due ON leads (campaign_id, next_try_at, id)
  WHERE next_try_at IS NOT NULL AND main_id IS NULL;

CREATE TABLE campaign_figures (
  campaign_id   INTEGER NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  -- The start of the quarter of an hour in which the calls began.
  slot          INTEGER NOT NULL,
  calls         INTEGER NOT NULL,
  answered      INTEGER NOT NULL,
  voicemail     INTEGER NOT NULL,
  goals         INTEGER NOT NULL,
  busy          INTEGER NOT NULL,
  no_answer     INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  talk_seconds  INTEGER NOT NULL,
  cost_micros   INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, slot)
) STRICT, WITHOUT ROWID;
INSERT INTO campaign_figures (campaign_id, slot, calls, answered, voicemail, goals, busy, no_answer,
  failed, talk_seconds, cost_micros)
SELECT f.campaign_id, f.slot, sum(1),
  sum(CASE WHEN f.is_over = 1 AND f.answered_by <> 'machine' THEN 1 ELSE 0 END),
  sum(CASE WHEN f.is_over = 1 AND f.answered_by = 'machine' THEN 1 ELSE 0 END),
  sum(CASE WHEN f.is_over = 1 AND f.answered_by <> 'machine' AND f.is_goal = 1 THEN 1 ELSE 0 END),
  sum(CASE WHEN f.status = 'busy' THEN 1 ELSE 0 END),
  sum(CASE WHEN f.status = 'no-answer' THEN 1 ELSE 0 END),
  sum(CASE WHEN f.status = 'failed' THEN 1 ELSE 0 END),
  sum(f.duration_seconds), sum(f.cost)
FROM (
  SELECT c.campaign_id, c.status, c.answered_by, c.duration_seconds,
    c.created_at - c.created_at % 900000000 AS slot,
    c.total_cost_micros + c.carrier_cost_micros AS cost,
    CASE WHEN c.status IN ('completed', 'ended_by_customer', 'ended_by_assistant')
      THEN 1 ELSE 0 END AS is_over,
    CASE WHEN k.goal_completion_variable IS NOT NULL AND replace(c.evaluation,
      '"' || k.goal_completion_variable || '":true', '') <> c.evaluation THEN 1 ELSE 0 END AS is_goal
  FROM calls c JOIN campaigns k ON k.id = c.campaign_id
  WHERE c.status NOT IN ('initiated', 'ringing', 'in-progress', 'ended')) f
GROUP BY f.campaign_id, f.slot;

-- Null: the status was set before this was recorded.
ALTER TABLE campaigns ADD COLUMN status_reason TEXT;
ALTER TABLE campaigns ADD COLUMN status_note TEXT;
ALTER TABLE campaigns ADD COLUMN status_by TEXT;
ALTER TABLE campaigns ADD COLUMN status_at INTEGER;
