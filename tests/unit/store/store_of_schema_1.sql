BEGIN TRANSACTION;
CREATE TABLE layers (
	run_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	count INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	shape TEXT NOT NULL, 
	operator_sha256 VARCHAR(64) NOT NULL, 
	macs BIGINT NOT NULL, 
	latency_cycles BIGINT, 
	energy_pj FLOAT, 
	edp FLOAT, 
	utilisation FLOAT, 
	bottleneck TEXT, 
	bound_latency_cycles BIGINT, 
	bound_energy_pj FLOAT, 
	score FLOAT, 
	samples BIGINT, 
	legal_samples BIGINT, 
	seconds FLOAT, 
	seed TEXT, 
	reason TEXT NOT NULL, 
	record TEXT NOT NULL, 
	PRIMARY KEY (run_id, position), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "layers" VALUES('20260101-000000-aaaaaa',0,'fc',1,'matmul','M4 N2','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',8,9,12.5,112.5,0.9,'compute',8,10.0,112.5,10,4,0.01,'3','','{"names": ["fc"], "count": 1, "operator": {"kind": "matmul", "dimensions": [["M", 4], ["N", 2]], "tensors": [], "macs": 8, "sha256": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "attributes": []}, "mapping": null, "cost": {"macs": 8, "steps": 8, "steady_cycles": 8, "ramp_cycles": 1, "latency_cycles": 9, "energy_pj": 12.5, "edp": 112.5, "energy_by_component_pj": {"DRAM": 12.5}, "counts": [], "traffic": [], "bottleneck": "compute", "utilisation": 0.9}, "bounds": {"compute_cycles": 8, "data_movement_cycles": 2, "latency_cycles": 8, "energy_pj": 10.0, "edp": 80.0, "blocked_cycles": 0, "latency_binding": "", "energy_binding": "", "score": null}, "roofline": null, "search": {"mapper": "random", "seed": 3, "samples": 10, "legal_samples": 4, "seconds": 0.01, "stopped": "budget", "score": 112.5, "history": [[1, 0.001, 200.0], [7, 0.005, 112.5]], "feasible": true, "complete": false}, "reason": "", "padding": null}');
INSERT INTO "layers" VALUES('20260101-000000-aaaaaa',1,'gru',2,'matmul','M4 N2','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'no tile fits','{"names": ["gru"], "count": 2, "operator": {"kind": "matmul", "dimensions": [["M", 4], ["N", 2]], "tensors": [], "macs": 8, "sha256": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "attributes": []}, "mapping": null, "cost": null, "bounds": null, "roofline": null, "search": null, "reason": "no tile fits", "padding": null}');
INSERT INTO "layers" VALUES('20260102-000000-bbbbbb',0,'fc',1,'matmul','M4 N2','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',8,9,12.5,112.5,0.9,'compute',8,10.0,112.5,10,4,0.01,'3','','{"names": ["fc"], "count": 1, "operator": {"kind": "matmul", "dimensions": [["M", 4], ["N", 2]], "tensors": [], "macs": 8, "sha256": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "attributes": []}, "mapping": null, "cost": {"macs": 8, "steps": 8, "steady_cycles": 8, "ramp_cycles": 1, "latency_cycles": 9, "energy_pj": 12.5, "edp": 112.5, "energy_by_component_pj": {"DRAM": 12.5}, "counts": [], "traffic": [], "bottleneck": "compute", "utilisation": 0.9}, "bounds": {"compute_cycles": 8, "data_movement_cycles": 2, "latency_cycles": 8, "energy_pj": 10.0, "edp": 80.0, "blocked_cycles": 0, "latency_binding": "", "energy_binding": "", "score": null}, "roofline": null, "search": {"mapper": "random", "seed": 3, "samples": 10, "legal_samples": 4, "seconds": 0.01, "stopped": "budget", "score": 112.5, "history": [[1, 0.001, 200.0], [7, 0.005, 112.5]], "feasible": true, "complete": false}, "reason": "", "padding": null}');
INSERT INTO "layers" VALUES('20260102-000000-bbbbbb',1,'gru',2,'matmul','M4 N2','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'no tile fits','{"names": ["gru"], "count": 2, "operator": {"kind": "matmul", "dimensions": [["M", 4], ["N", 2]], "tensors": [], "macs": 8, "sha256": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "attributes": []}, "mapping": null, "cost": null, "bounds": null, "roofline": null, "search": null, "reason": "no tile fits", "padding": null}');
CREATE TABLE runs (
	id VARCHAR(64) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	tilewright_version VARCHAR(32) NOT NULL, 
	network TEXT NOT NULL, 
	network_sha256 VARCHAR(64) NOT NULL, 
	accelerator TEXT NOT NULL, 
	accelerator_sha256 VARCHAR(64) NOT NULL, 
	objective TEXT NOT NULL, 
	mapper TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	budget_samples BIGINT, 
	budget_seconds FLOAT, 
	layers INTEGER NOT NULL, 
	unmapped_layers INTEGER NOT NULL, 
	latency_cycles BIGINT NOT NULL, 
	energy_pj FLOAT NOT NULL, 
	edp FLOAT NOT NULL, 
	macs BIGINT NOT NULL, 
	utilisation FLOAT NOT NULL, 
	area_um2 FLOAT NOT NULL, 
	search_seconds FLOAT NOT NULL, 
	samples BIGINT NOT NULL, 
	record TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('20260101-000000-aaaaaa','2026-01-01T00:00:00+00:00','0.1.0','tiny','0000000000000000000000000000000000000000000000000000000000000000','one','1111111111111111111111111111111111111111111111111111111111111111','edp','random',3,10,NULL,2,2,9,12.5,112.5,8,0.9,2.0,0.01,10,'{"id": "20260101-000000-aaaaaa", "created": "2026-01-01T00:00:00+00:00", "software": {"tilewright": "0.1.0", "python": "3.11", "numpy": "2.4", "numba": "0.68", "platform": ""}, "network": {"name": "tiny", "source": "zoo", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "coverage": "", "notes": []}, "accelerator": {"name": "one", "definition": "name: one", "description": "", "sha256": "1111111111111111111111111111111111111111111111111111111111111111", "frequency_mhz": 100.0, "compute_instances": 1, "area_um2": 2.0, "technology": "given", "sources": []}, "request": {"objective": "edp", "mapper": "random", "seed": 3, "tiling": "perfect", "constraints": [], "options": {"a": 1, "b": null}, "budget_samples": 10, "budget_seconds": null, "command": "", "dataflow": "", "space": "", "pad": false}, "totals": {"latency_cycles": 9, "energy_pj": 12.5, "edp": 112.5, "macs": 8, "utilisation": 0.9, "area_um2": 2.0, "seconds": 0.01, "samples": 10, "bound_latency_cycles": 8, "bound_energy_pj": 10.0, "bound_edp": 80.0, "unmapped_layers": 2, "ineffectual_share": 0.0}, "layers": [], "vector_nodes": [], "not_modelled": [], "unfinished": [], "schema_version": 1}');
INSERT INTO "runs" VALUES('20260102-000000-bbbbbb','2026-01-02T00:00:00+00:00','0.1.0','vgg','0000000000000000000000000000000000000000000000000000000000000000','one','1111111111111111111111111111111111111111111111111111111111111111','edp','random',3,10,NULL,2,2,9,12.5,112.5,8,0.9,2.0,0.01,10,'{"id": "20260102-000000-bbbbbb", "created": "2026-01-02T00:00:00+00:00", "software": {"tilewright": "0.1.0", "python": "3.11", "numpy": "2.4", "numba": "0.68", "platform": ""}, "network": {"name": "vgg", "source": "zoo", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "coverage": "", "notes": []}, "accelerator": {"name": "one", "definition": "name: one", "description": "", "sha256": "1111111111111111111111111111111111111111111111111111111111111111", "frequency_mhz": 100.0, "compute_instances": 1, "area_um2": 2.0, "technology": "given", "sources": []}, "request": {"objective": "edp", "mapper": "random", "seed": 3, "tiling": "perfect", "constraints": [], "options": {"a": 1, "b": null}, "budget_samples": 10, "budget_seconds": null, "command": "", "dataflow": "", "space": "", "pad": false}, "totals": {"latency_cycles": 9, "energy_pj": 12.5, "edp": 112.5, "macs": 8, "utilisation": 0.9, "area_um2": 2.0, "seconds": 0.01, "samples": 10, "bound_latency_cycles": 8, "bound_energy_pj": 10.0, "bound_edp": 80.0, "unmapped_layers": 2, "ineffectual_share": 0.0}, "layers": [], "vector_nodes": [], "not_modelled": [], "unfinished": [], "schema_version": 1}');
CREATE TABLE tilewright_meta (
	"key" VARCHAR(32) NOT NULL, 
	value VARCHAR(64) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "tilewright_meta" VALUES('schema','1');
CREATE INDEX ix_runs_accelerator ON runs (accelerator);
CREATE INDEX ix_runs_network ON runs (network);
CREATE INDEX ix_runs_created ON runs (created);
CREATE INDEX ix_layers_operator_sha256 ON layers (operator_sha256);
COMMIT;
